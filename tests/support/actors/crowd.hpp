// Actors that send to many.
#pragma once

#include <gyre/device/asking.hpp>
#include <gyre/device/pool.hpp>
#include <support/actors/crowd.view.hpp>

namespace gyre_crowd {

inline constexpr uint32_t most_said = 7;  // notes in one message
inline constexpr uint32_t callers = 4;    // whose order hearers watch

/// Ways to send a note: bits of Say.kinds.
enum Kind : uint32_t { told = 1, broadcast = 2, published = 4, flashed = 8, to_others = 16 };

/// How a caller sends the n-th note: by which kind, and the key or the topic. Tests compute it, too.
struct Plan {
  uint32_t kind = told;
  uint64_t to = 0;

  GYRE_DEVICE static constexpr Plan of(uint32_t kinds, uint64_t seed, uint32_t n, uint64_t hearers,
                                       uint64_t topics) {
    uint64_t random = (seed + n + 1) * 0x9e3779b97f4a7c15u;
    random = (random ^ (random >> 32)) * 0xd6e8feb86659fd93u;
    random ^= random >> 32;
    Plan plan;
    uint32_t wanted = uint32_t(random % 64);
    for (plan.kind = 1;; plan.kind = plan.kind == to_others ? 1 : plan.kind * 2) {
      if ((kinds & plan.kind) != 0 && wanted-- == 0) break;
    }
    const uint64_t many = plan.kind == told ? hearers : topics;
    plan.to = many == 0 ? 0 : (random >> 8) % many;
    return plan;
  }
};
/// Word i of a note.
GYRE_DEVICE constexpr uint64_t word_of(uint64_t number, uint64_t i) { return number * 1000 + i; }

GYRE_DEVICE constexpr gyre::Topic<view::Note> notes_about(uint64_t id) { return {id}; }
GYRE_DEVICE constexpr gyre::Topic<view::Flash> flashes_about(uint64_t id) { return {id}; }
inline constexpr gyre::Topic<view::Chat> chats{0};
inline constexpr char pool_name[] = "orders of Monday";

struct Caller;
struct CallerThatAsks;

/// What a hearer has heard.
struct Ear {
  uint64_t notes = 0, flashes = 0, sum = 0, unordered = 0, wrong = 0;
  uint64_t next[callers] = {};

  // Every thread calls it, and then a barrier.
  template <class ContextType, class Reader>
  GYRE_DEVICE void hear(ContextType& ctx, const Reader& in) {
    const bool of_caller = ctx.template is_from<Caller>(), asks = ctx.template is_from<CallerThatAsks>();
    const uint64_t caller = of_caller ? ctx.template sender<Caller>().key % callers
                            : asks    ? ctx.template sender<CallerThatAsks>().key % callers
                                      : 0;
    const auto words = in.getWords();
    bool right = of_caller || asks;
    for (uint32_t i = 0; i < words.size(); ++i) right = right && words[i] == word_of(in.getNumber(), i);
    ctx.sync();
    if (ctx.rank() != 0) return;
    unordered += in.getNumber() < next[caller] ? 1 : 0;
    next[caller] = in.getNumber() + 1;
    sum += in.getNumber();
    wrong += right ? 0 : 1;
  }
  GYRE_DEVICE void report(view::Heard::Builder out) const {
    out.setNotes(notes);
    out.setFlashes(flashes);
    out.setSum(sum);
    out.setUnordered(unordered);
    out.setWrong(wrong);
  }
};

/// Hears notes by all ways. Its handlers of them may send.
struct Hearer {
  using Handles = gyre::Handles<view::Note, view::Flash, view::Listen, view::HeardRequest>;
  Ear ear;

  GYRE_DEVICE void on(gyre::Sending<2, gyre::ToMany>& ctx, view::Note::Reader in) {
    ear.hear(ctx, in);
    if (ctx.rank() == 0) ++ear.notes;
    ctx.sync();
    if (in.getThen() == view::Then::STOP) ctx.stop(ctx.self<Hearer>());
    if (in.getThen() == view::Then::LEAVE || in.getThen() == view::Then::TURN)
      ctx.unsubscribe(notes_about(0));
    if (in.getThen() == view::Then::TURN) ctx.subscribe<Hearer>(notes_about(0));
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Flash::Reader in) {
    ear.hear(ctx, in);
    if (ctx.rank() == 0) ++ear.flashes;
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Sending<32, gyre::ToMany>& ctx, view::Listen::Reader in,
                      view::Listening::Builder) {
    for (uint32_t i = 0; i < in.getCount(); ++i) {
      for (uint32_t n = 0; n < (in.getTwice() ? 2u : 1u); ++n) {
        const uint64_t id = in.getTopic() + i;
        if (in.getEnds()) {
          if (in.getFlashes()) ctx.unsubscribe(flashes_about(id));
          if (!in.getFlashes()) ctx.unsubscribe(notes_about(id));
        } else {
          if (in.getFlashes()) ctx.subscribe<Hearer>(flashes_about(id));
          if (!in.getFlashes()) ctx.subscribe<Hearer>(notes_about(id));
        }
      }
    }
    if (in.getFails()) ctx.fail(5);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::HeardRequest::Reader, view::Heard::Builder out) {
    ear.report(out);
    ctx.sync();
  }
};
/// Hears broadcast notes, without a right to send. On a GPU its mail is handled side by side.
struct Other {
  using Handles = gyre::Handles<view::Note, view::HeardRequest>;
  static constexpr bool keys_side_by_side = true;
  uint64_t notes = 0, sum = 0;

  GYRE_DEVICE void on(gyre::Context& ctx, view::Note::Reader in) {
    if (ctx.rank() == 0) {
      ++notes;
      sum += in.getNumber();
    }
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::HeardRequest::Reader, view::Heard::Builder out) {
    out.setNotes(notes);
    out.setSum(sum);
    ctx.sync();
  }
};

/// Builds a note or a flash. NVRTC takes a generic lambda for the host's.
struct FillNote {
  uint64_t number;
  view::Then then;
  uint32_t words;
  uint32_t rank, size;  // of the team
  template <class Builder>
  GYRE_DEVICE void operator()(Builder note) const {
    note.setNumber(number);
    note.setThen(then);
    auto list = note.initWords(words);
    for (uint32_t i = rank; i < words; i += size) list.set(i, word_of(number, i));
  }
};
/// Sends notes.
struct Calls {
  uint64_t next = 0;  // the number of the next note

  template <class ContextType>
  GYRE_DEVICE void say(ContextType& ctx, view::Say::Reader in) {
    const uint32_t count = in.getCount() < most_said ? in.getCount() : most_said;
    for (uint32_t n = 0; n < count; ++n) {
      const Plan plan = Plan::of(in.getKinds(), in.getSeed(), n, in.getHearers(), in.getTopics());
      const FillNote fill{next + n, in.getThen(), in.getFiller(), ctx.rank(), ctx.size()};
      if (plan.kind == told) ctx.template tell<view::Note>(gyre::Address<Hearer>{plan.to}, fill);
      if (plan.kind == broadcast) ctx.template broadcast<view::Note, Hearer>(fill);
      if (plan.kind == published) ctx.publish(notes_about(plan.to), fill);
      if (plan.kind == flashed) ctx.publish(flashes_about(plan.to), fill);
      if (plan.kind == to_others) ctx.template broadcast<view::Note, Other>(fill);
    }
    if (in.getFails()) ctx.fail(3);
    ctx.sync();
    if (ctx.rank() == 0) next += count;
    ctx.sync();
  }
};
struct Caller {
  Calls calls;
  GYRE_DEVICE void on(gyre::Sending<most_said, gyre::ToMany>& ctx, view::Say::Reader in,
                      view::Said::Builder out) {
    calls.say(ctx, in);
    out.setNext(calls.next);
  }
};
/// Also asks hearer 0 what it heard, each time.
struct CallerThatAsks {
  using Handles = gyre::Handles<view::Say, view::HeardRequest>;
  struct State {
    uint64_t unused;
  };
  Calls calls;
  uint64_t replies = 0;

  GYRE_DEVICE void on(gyre::Asking<most_said + 1, gyre::ToMany>& ctx, view::Say::Reader in,
                      view::Said::Builder out) {
    calls.say(ctx, in);
    ctx.ask<view::HeardRequest>(
        gyre::Address<Hearer>{0}, [](view::HeardRequest::Builder) {}, State{0});
    out.setNext(calls.next);
  }
  GYRE_DEVICE void on_reply(gyre::Context& ctx, State, view::Heard::Reader) { count(ctx); }
  GYRE_DEVICE void on_failure(gyre::Context& ctx, State, gyre::ErrorBody) { count(ctx); }
  GYRE_DEVICE void on(gyre::Context& ctx, view::HeardRequest::Reader, view::Heard::Builder out) {
    out.setReplies(replies);
    ctx.sync();
  }

 private:
  GYRE_DEVICE void count(gyre::Context& ctx) {
    if (ctx.rank() == 0) ++replies;
    ctx.sync();
  }
};

/// Passes on what it hears to all of its kind.
struct Chatter {
  using Handles = gyre::Handles<view::Chat, view::Listen, view::HeardRequest>;
  uint64_t heard = 0;

  GYRE_DEVICE void on(gyre::Sending<2, gyre::ToMany>& ctx, view::Chat::Reader in) {
    if (ctx.rank() == 0) ++heard;
    ctx.sync();
    if (in.getHops() == 0) return;
    const auto fill = [&](view::Chat::Builder chat) {
      chat.setHops(in.getHops() - 1);
      chat.setGrows(in.getGrows());
      chat.setPublished(in.getPublished());
    };
    if (in.getPublished()) {
      ctx.publish(chats, fill);
    } else {
      ctx.broadcast<view::Chat, Chatter>(fill);
    }
    if (in.getGrows()) ctx.spawn<Chatter>();
  }
  GYRE_DEVICE void on(gyre::Sending<1, gyre::ToMany>& ctx, view::Listen::Reader, view::Listening::Builder) {
    ctx.subscribe<Chatter>(chats);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::HeardRequest::Reader, view::Heard::Builder out) {
    out.setNotes(heard);
    ctx.sync();
  }
};

/// Has no state: what it hears of topic 0 it tells hearer 0.
struct Herald {
  using Handles = gyre::Handles<view::Flash, view::Listen>;
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Flash::Reader in) {
    ctx.tell<view::Flash>(gyre::Address<Hearer>{0},
                          [&](view::Flash::Builder flash) { flash.setNumber(in.getNumber()); });
  }
  GYRE_DEVICE void on(gyre::Sending<1, gyre::ToMany>& ctx, view::Listen::Reader in,
                      view::Listening::Builder) {
    if (in.getEnds()) ctx.unsubscribe(flashes_about(in.getTopic()));
    if (!in.getEnds()) ctx.subscribe<Herald>(flashes_about(in.getTopic()));
  }
};

/// Chooses members of a pool.
struct Chooser {
  GYRE_DEVICE void on(gyre::Context&, view::Choose::Reader in, view::Chosen::Builder out) {
    const gyre::Pool<Hearer> pool{.first_key = in.getFirst(), .size = in.getSize()};
    auto keys = out.initKeys(in.getCount());
    for (uint32_t i = 0; i < in.getCount(); ++i) keys.set(i, pool.member(in.getValue() + i).key);
    out.setByName(pool.member(pool_name, sizeof pool_name - 1).key);
  }
};

}  // namespace gyre_crowd
