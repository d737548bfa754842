// Actors that tell the host.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/telling.view.hpp>

namespace gyre_telling {

/// Element i of the filler of a speaker's number.
GYRE_DEVICE constexpr uint64_t element(uint64_t speaker, uint64_t number, uint64_t i) {
  return (speaker * 1'000'003 + number * 65'537 + i) * 0x9e3779b97f4a7c15u;
}

/// Tells the host its numbers, from 0 on; those that there was room for.
template <template <uint32_t, class...> class ContextOf>
struct Speaking {
  static constexpr uint32_t most = 8;

  uint64_t next = 0, answered = 0;

  GYRE_DEVICE void speak(ContextOf<most, gyre::ToHost>& ctx, view::Speak::Reader in,
                         view::Spoken::Builder out) {
    uint32_t told = 0, refused = 0;
    for (uint32_t i = 0; i < in.getCount() && i < most; ++i) {
      const uint64_t number = next + told;
      const bool went = ctx.template tell_host<view::Number>([&](view::Number::Builder message) {
        message.setNumber(number);
        auto filler = message.initFiller(in.getFiller());
        for (uint32_t k = ctx.rank(); k < in.getFiller(); k += ctx.size())
          filler.set(k, element(ctx.key(), number, k));
      });
      ++(went ? told : refused);
    }
    ctx.sync();
    if (ctx.rank() == 0 && !in.getFails()) next += told;
    out.setTold(told);
    out.setRefused(refused);
    out.setAnswered(answered);
    ctx.sync();
    if (in.getFails()) ctx.fail(9);
  }
};

/// In a set that sends.
struct Speaker : Speaking<gyre::Sending> {
  using Handles = gyre::Handles<view::Speak, view::Hear>;
  GYRE_DEVICE void on(gyre::Sending<most, gyre::ToHost>& ctx, view::Speak::Reader in,
                      view::Spoken::Builder out) {
    speak(ctx, in, out);
  }
  GYRE_DEVICE void on(gyre::Sending<1, gyre::ToHost>& ctx, view::Hear::Reader in) {
    ctx.sync();
    if (ctx.rank() == 0) answered += in.getNumber();
    ctx.sync();
    ctx.tell_host<view::Remark>([&](view::Remark::Builder remark) { remark.setNumber(in.getNumber()); });
  }
};

/// In a set that asks.
struct Asker : Speaking<gyre::Asking> {
  GYRE_DEVICE void on(gyre::Asking<most, gyre::ToHost>& ctx, view::Speak::Reader in,
                      view::Spoken::Builder out) {
    speak(ctx, in, out);
  }
};

/// Is told by a chorus, and tells the host.
struct Singer {
  uint64_t next = 0;
  GYRE_DEVICE void on(gyre::Sending<1, gyre::ToHost>& ctx, view::Speak::Reader) {
    const bool went =
        ctx.tell_host<view::Number>([&](view::Number::Builder number) { number.setNumber(next); });
    ctx.sync();
    if (ctx.rank() == 0 && went) ++next;
    ctx.sync();
  }
};
/// Tells singers, some of other workers.
struct Chorus {
  static constexpr uint32_t most = 32;
  GYRE_DEVICE void on(gyre::Sending<most>& ctx, view::Conduct::Reader in) {
    for (uint32_t i = 0; i < in.getSpeakers() * in.getCount() && i < most; ++i) {
      ctx.tell<view::Speak>(gyre::Address<Singer>{1 + i % in.getSpeakers()}, [](view::Speak::Builder) {});
    }
  }
};

/// Only sends.
struct Silent {
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Hear::Reader in) {
    if (in.getNumber() != 0)
      ctx.tell<view::Hear>(ctx.self<Silent>(), [](view::Hear::Builder hear) { hear.setNumber(0); });
  }
};

}  // namespace gyre_telling
