// Actors that create each other, answer who told them something, and stop.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/family.view.hpp>

namespace gyre_family {

struct Parent;
struct Middle;

/// Doubles numbers, each for the parent that told it, and stops.
struct Child {
  using Handles = gyre::Handles<view::Work, view::Look>;

  uint64_t started = 0, orphans = 0;

  GYRE_DEVICE void on_start(gyre::Context& ctx) {
    ctx.sync();
    if (ctx.rank() == 0) ++started;
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Sending<2>& ctx, view::Work::Reader in);
  GYRE_DEVICE void on(gyre::Context& ctx, view::Look::Reader, view::Looked::Builder out) {
    out.setStarted(started);
    out.setOrphans(orphans);
    ctx.sync();
  }
};

/// Creates children.
struct Parent {
  using Handles = gyre::Handles<view::Breed, view::Done, view::Report>;
  static constexpr uint32_t most = 16;

  uint64_t done = 0, wrong = 0, numbers = 0, last_child = 0, known = 0;

  GYRE_DEVICE void on(gyre::Sending<2 * most>& ctx, view::Breed::Reader in);
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Done::Reader in) {
    const bool right = ctx.is_from<Child>() && ctx.sender<Child>().key == in.getChild() &&
                       !ctx.is_from<Parent>() && in.getDouble() == 2 * in.getNumber() &&
                       in.getChild() >> 63 == 1;
    ctx.sync();
    if (ctx.rank() == 0) {
      ++done;
      wrong += right ? 0 : 1;
      numbers += in.getNumber();
    }
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Report::Reader, view::Reported::Builder out) {
    out.setDone(done);
    out.setWrong(wrong);
    out.setNumbers(numbers);
    out.setLastChild(last_child);
    out.setKnown(known);
    ctx.sync();
  }
};

/// Passes work on to the child with its own key.
struct Middle {
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Work::Reader in) {
    ctx.forward(gyre::Address<Child>{ctx.key()}, in);
  }
};

/// Takes the message in hand for another: forward() does not.
struct Confused {
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Breed::Reader) {
    ctx.forward(gyre::Address<Child>{ctx.key()}, view::Work::Reader(gyre::wire::StructReader{}));
  }
};

/// Takes the host for an actor.
struct Credulous {
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Work::Reader in) {
    ctx.tell<view::Work>(ctx.sender<Child>(),
                         [&](view::Work::Builder work) { work.setNumber(in.getNumber()); });
  }
};

GYRE_DEVICE inline void Child::on(gyre::Sending<2>& ctx, view::Work::Reader in) {
  if (!ctx.is_from<Parent>()) {
    ctx.sync();
    if (ctx.rank() == 0) ++orphans;
    ctx.sync();
    return;
  }
  ctx.tell<view::Done>(ctx.sender<Parent>(), [&](view::Done::Builder done) {
    done.setNumber(in.getNumber());
    done.setDouble(2 * in.getNumber());
    done.setChild(ctx.key());
  });
  ctx.stop(ctx.self<Child>());
}

GYRE_DEVICE inline void Parent::on(gyre::Sending<2 * most>& ctx, view::Breed::Reader in) {
  uint64_t last = last_child;
  bool fresh = true;
  for (uint32_t i = 0; i < in.getCount() && i < most; ++i) {
    const auto child = ctx.spawn<Child>();
    fresh = fresh && child.key != last;
    last = child.key;
    const auto fill = [&](view::Work::Builder work) { work.setNumber(in.getFirst() + i); };
    if (in.getWay() == view::Way::STOPPED_AT_ONCE) {
      ctx.stop(child);
    } else if (in.getWay() == view::Way::FORWARDED) {
      ctx.tell<view::Work>(gyre::Address<Middle>{child.key}, fill);
    } else {
      ctx.tell<view::Work>(child, fill);
    }
  }
  ctx.sync();
  if (ctx.rank() == 0) {
    last_child = last;
    known += fresh ? 0 : 1;
  }
  ctx.sync();
  if (in.getWay() == view::Way::FAILED) ctx.fail(7);
}

}  // namespace gyre_family
