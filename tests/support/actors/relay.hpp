// Actors that send to each other.
#pragma once

#include <gyre/device/sending.hpp>
#include <support/actors/relay.view.hpp>

namespace gyre_relay {

/// Relays have keys below this, and so many sinks in a row are told apart.
inline constexpr uint32_t most_relays = 64, most_sinks = 16;

/// Number i of the filler of a note.
GYRE_DEVICE constexpr uint64_t element(uint64_t relay, uint64_t number, uint64_t i) {
  return (relay * 1'000'003 + number * 65'537 + i) * 0x9e3779b97f4a7c15u;
}

/// Counts notes. Each relay's must come in the order of their numbers.
struct Sink {
  using Handles = gyre::Handles<view::Note, view::Count>;
  static constexpr bool keys_side_by_side = true;

  uint64_t next[most_relays] = {};
  uint64_t notes = 0, wrong = 0, fillers = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Note::Reader in) {
    const uint64_t relay = in.getRelay() % most_relays, number = in.getNumber();
    const auto filler = in.getFiller();
    bool right = in.getRelay() == relay && number == next[relay];
    for (uint32_t i = 0; i < filler.size(); ++i) right = right && filler[i] == element(relay, number, i);
    ctx.sync();
    if (ctx.rank() != 0) return;
    next[relay] = number + 1;
    ++notes;
    wrong += right ? 0 : 1;
    fillers += filler.size();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Count::Reader, view::Counted::Builder out) {
    out.setNotes(notes);
    out.setWrong(wrong);
    out.setFillers(fillers);
    ctx.sync();
  }
};

struct Relay;

/// A node of a graph, of at most `most` nodes.
struct Node {
  using Handles = gyre::Handles<view::Spread, view::Count>;
  static constexpr uint32_t most = 24, most_copies = 4;

  uint64_t next[most + 1] = {}, sent[most] = {};  // numbers, by the other node
  uint64_t visits = 0, wrong = 0, missing = 0, turn = 0;

  GYRE_DEVICE void on(gyre::Sending<most_copies>& ctx, view::Spread::Reader in) {
    ctx.sync();
    if (ctx.rank() == 0) {
      note(in.getFrom(), in.getNumber());
      wrong += ctx.is_from<Sink>() || ctx.is_from<Relay>() ? 1 : 0;  // nodes and the host send it
    }
    ctx.sync();
    for (uint32_t i = 0; in.getHops() != 0 && i < in.getCopies(); ++i) {
      const uint64_t to = receiver(in.getGraph(), ctx.key(), in.getNodes(), turn + i);
      const uint64_t number = sent[to];
      ctx.sync();
      if (ctx.rank() == 0) sent[to] = number + 1;
      ctx.tell<view::Spread>(gyre::Address<Node>{to}, [&](view::Spread::Builder spread) {
        spread.setFrom(ctx.key());
        spread.setNumber(number);
        spread.setHops(in.getHops() - 1);
        spread.setCopies(in.getCopies());
        spread.setNodes(in.getNodes());
        spread.setGraph(in.getGraph());
      });
      ctx.sync();
    }
    if (ctx.rank() == 0) turn += in.getCopies();
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Count::Reader, view::Visited::Builder out) {
    out.setVisits(visits);
    out.setWrong(wrong);
    out.setMissing(missing);
    ctx.sync();
  }

 private:
  GYRE_DEVICE void note(uint64_t from, uint64_t number) {
    ++visits;
    uint64_t& expected = next[from <= most ? from : most];
    if (number < expected) {
      ++wrong;
      return;
    }
    missing += number - expected;
    expected = number + 1;
  }
  GYRE_DEVICE static uint64_t receiver(view::Graph graph, uint64_t key, uint64_t nodes, uint64_t turn) {
    switch (graph) {
      case view::Graph::RING:
        return (key + 1) % nodes;
      case view::Graph::STAR:
        return key != 0 || nodes == 1 ? 0 : 1 + turn % (nodes - 1);
      case view::Graph::ALL_TO_ALL:
        return (key + turn) % nodes;
      case view::Graph::RANDOM:
        return ((key + 1) * 0x9e3779b97f4a7c15u >> 8 * (turn % 4 + 2)) % nodes;
      default:
        return key;
    }
  }
};

/// Executes a trap where it is asked.
struct Trap {
  GYRE_DEVICE void on(gyre::Context&, view::Count::Reader, view::Counted::Builder) {
#if defined(__CUDACC_RTC__)
    __trap();
#endif
  }
};

/// Is in no set.
struct Stranger {
  GYRE_DEVICE void on(gyre::Context&, view::Note::Reader) {}
};

/// Sends. Where its handler fails, its numbers are as before: a sink sees a gap if a note was sent all the
/// same.
struct Relay {
  using Handles = gyre::Handles<view::Burst, view::Hop>;
  static constexpr bool rollback_on_error = true;
  static constexpr uint32_t most = 8;

  uint64_t sent[most_sinks] = {};  // notes, by the sink's key

  GYRE_DEVICE void on(gyre::Sending<most>& ctx, view::Burst::Reader in, view::Sent::Builder out) {
    const uint32_t count = in.getCount() + (in.getEnd() == view::End::SEND_ONE_TOO_MANY ? most + 1 : 0);
    if (in.getEach()) {
      note_each(ctx, in.getSink(), in.getStride(), count, in.getFiller());
    } else {
      for (uint32_t i = 0; i < count; ++i) note(ctx, in.getSink() + i * in.getStride(), in.getFiller());
    }
    out.setCount(count);
    if (in.getEnd() == view::End::FAIL_ALL) ctx.fail(7);
    if (in.getEnd() == view::End::FAIL_IN_ONE_THREAD && ctx.rank() == ctx.size() - 1) ctx.fail(8);
    if (in.getEnd() == view::End::SEND_TOO_LARGE) note(ctx, in.getSink(), 100'000);
    if (in.getEnd() == view::End::SEND_TO_STRANGER) {
      ctx.tell<view::Note>(gyre::Address<Stranger>{1}, [](view::Note::Builder) {});
    }
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Hop::Reader in) {
    if (in.getHops() == 0) {
      ctx.tell<view::Note>(gyre::Address<Sink>{in.getSink()}, [&](view::Note::Builder note) {
        note.setRelay(0);
        note.setNumber(in.getNumber());
      });
      return;
    }
    const uint64_t next = (ctx.key() + in.getStride()) % most_relays;
    ctx.tell<view::Hop>(gyre::Address<Relay>{next}, [&](view::Hop::Builder hop) {
      hop.setSink(in.getSink());
      hop.setStride(in.getStride());
      hop.setHops(in.getHops() - 1);
      hop.setNumber(in.getNumber());
    });
  }

 private:
  // `stride` is 0 or 1: the sinks are one, or differ.
  template <class Context>
  GYRE_DEVICE void note_each(Context& ctx, uint64_t sink, uint32_t stride, uint32_t count, uint32_t filler) {
    const auto sink_of = [&](uint32_t n) { return sink + n * stride; };
    const auto number_of = [&](uint32_t n) { return sent[sink_of(n) % most_sinks] + (stride == 0 ? n : 0); };
    ctx.sync();
    ctx.template tell_each<view::Note>(
        count, [&](uint32_t n) { return gyre::Address<Sink>{sink_of(n)}; },
        [&](uint32_t n, view::Note::Builder note) {
          note.setRelay(ctx.key());
          note.setNumber(number_of(n));
          const auto numbers = note.initFiller(filler);
          for (uint32_t i = 0; i < numbers.size(); ++i) numbers.set(i, element(ctx.key(), number_of(n), i));
        });
    ctx.sync();
    for (uint32_t n = 0; ctx.rank() == 0 && n < count; ++n) sent[sink_of(n) % most_sinks] += 1;
  }
  template <class Context>
  GYRE_DEVICE void note(Context& ctx, uint64_t sink, uint32_t filler) {
    ctx.sync();
    const uint64_t number = sent[sink % most_sinks];
    ctx.sync();
    if (ctx.rank() == 0) sent[sink % most_sinks] = number + 1;
    ctx.template tell<view::Note>(gyre::Address<Sink>{sink}, [&](view::Note::Builder note) {
      note.setRelay(ctx.key());
      note.setNumber(number);
      const auto numbers = note.initFiller(filler);
      for (uint32_t i = ctx.rank(); i < numbers.size(); i += ctx.size()) {
        numbers.set(i, element(ctx.key(), number, i));
      }
    });
  }
};

}  // namespace gyre_relay
