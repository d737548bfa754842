// Actors whose messages do not fit a slot.
#pragma once

#include <gyre/device/asking.hpp>
#include <support/actors/bodies.view.hpp>

namespace gyre_bodies {

/// Senders have keys below this.
inline constexpr uint64_t most_senders = 32;

/// Number i of a load, or of a response.
GYRE_DEVICE constexpr uint64_t element(uint64_t sender, uint64_t number, uint64_t i) {
  return (sender * 1'000'003 + number * 65'537 + i) * 0x9e3779b97f4a7c15u;
}
GYRE_DEVICE constexpr bool is_flag(uint64_t number, uint64_t i) { return (number + i) % 3 == 0; }

/// Every thread of `size` calls it.
GYRE_DEVICE inline void fill_load(view::Load::Builder load, uint64_t sender, uint64_t number, uint32_t words,
                                  uint32_t rank, uint32_t size) {
  load.setSender(sender);
  load.setNumber(number);
  const auto list = load.initWords(words);
  for (uint32_t i = rank; i < list.size(); i += size) list.set(i, element(sender, number, i));
  const auto flags = load.initFlags(words);
  for (uint32_t i = rank; i < flags.size(); i += size) {
    if (is_flag(number, i)) flags.set(i, true);  // others stay as the memory is
  }
  const auto text = load.initText(words);
  for (uint32_t i = rank; i < text.size(); i += size) {
    if (i % 2 == 0) text.set(i, char('a' + (number + i) % 26));
  }
}
/// Whether the part of a load that one thread reads is right.
GYRE_DEVICE inline bool is_right(view::Load::Reader load, uint64_t number, uint32_t rank, uint32_t size) {
  const auto words = load.getWords();
  const auto flags = load.getFlags();
  const auto text = load.getText();
  bool right = load.getNumber() == number && flags.size() == words.size() && text.size() == words.size();
  for (uint32_t i = rank; i < words.size(); i += size) {
    right = right && words[i] == element(load.getSender(), number, i) && flags[i] == is_flag(number, i);
    right = right && text[i] == (i % 2 == 0 ? char('a' + (number + i) % 26) : char(0));
  }
  return right;
}

/// Takes loads, each sender's in the order of their numbers, and answers with as many words as asked for.
struct Store {
  using Handles = gyre::Handles<view::Load, view::Count, view::Fetch, view::Mirror>;
  static constexpr uint32_t most_fetched = 12'000;  // bytes
  GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::Load) { return 0; }
  GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::Count) { return 0; }
  GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::Fetch) { return most_fetched; }
  GYRE_DEVICE static constexpr uint32_t max_reply_bytes(view::Mirror) { return 0; }
  static constexpr uint32_t failure = 5;

  uint64_t next[most_senders] = {};
  uint64_t loads = 0, wrong = 0, words = 0;
  uint32_t bad = 0;  // of the load in hand

  GYRE_DEVICE void on(gyre::Context& ctx, view::Load::Reader in) {
    const uint64_t sender = in.getSender() % most_senders;
    if (ctx.rank() == 0) bad = 0;
    ctx.sync();
    const uint64_t number = in.getRepeats() ? in.getNumber() : next[sender];
    if (!is_right(in, number, ctx.rank(), ctx.size())) bad = 1;
    ctx.sync();
    if (ctx.rank() != 0) return;
    if (!in.getRepeats()) next[sender] = in.getNumber() + 1;
    ++loads;
    wrong += bad;
    words += in.getWords().size();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Count::Reader, view::Counted::Builder out) {
    out.setLoads(loads);
    out.setWrong(wrong);
    out.setWords(words);
    ctx.sync();
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Fetch::Reader in, view::Fetched::Builder out) {
    answer(ctx, out, in.getSeed(), in.getWords());
    if (in.getFails()) ctx.fail(failure);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Mirror::Reader in, view::Mirrored::Builder out) {
    const auto words = in.getWords();
    bool right = true;
    for (uint32_t i = ctx.rank(); i < words.size(); i += ctx.size())
      right = right && words[i] == element(1, in.getSeed(), i);
    if (!right) return ctx.fail(failure + 1);
    answer(ctx, out, in.getSeed(), words.size());
    if (in.getFails() && ctx.rank() == ctx.size() - 1) ctx.fail(failure);
  }

 private:
  template <class Builder>
  GYRE_DEVICE static void answer(gyre::Context& ctx, Builder out, uint64_t seed, uint32_t words) {
    out.setSeed(seed);
    const auto list = out.initWords(words);
    for (uint32_t i = ctx.rank(); i < list.size(); i += ctx.size()) list.set(i, element(2, seed, i));
  }
};

/// Passes on what it gets to the store of its key: loads twice, to the store and to the one behind it.
struct Porter {
  using Handles = gyre::Handles<view::Load, view::Mirror, view::Fetch>;
  GYRE_DEVICE void on(gyre::Asking<2, gyre::LargeMessages>& ctx, view::Load::Reader in) {
    ctx.forward(gyre::Address<Store>{ctx.key()}, in);
    ctx.forward(gyre::Address<Store>{ctx.key() + 1}, in);
  }
  GYRE_DEVICE void on(gyre::Asking<1, gyre::LargeMessages>& ctx, view::Mirror::Reader in,
                      view::Mirrored::Builder) {
    ctx.forward(gyre::Address<Store>{ctx.key()}, in);
    if (in.getSeed() == 0) ctx.fail(9);
  }
  GYRE_DEVICE void on(gyre::Asking<1, gyre::LargeMessages>& ctx, view::Fetch::Reader in,
                      view::Fetched::Builder) {
    ctx.forward(gyre::Address<Store>{ctx.key()}, in);
  }
};

template <class Response>
struct Pending {
  enum : uint64_t { tells = 1, twice = 2 };
  gyre::Promise<view::Answer> promise;
  uint64_t seed;
  uint64_t flags;
};

/// Sends, forwards, asks and answers as others here, but may send nothing that does not fit a slot.
struct Modest {
  using Handles = gyre::Handles<view::Order, view::Load, view::Ask, view::Mirror>;
  struct Shortened {
    gyre::Promise<view::Mirrored> promise;
    uint64_t seed;
  };
  using Awaits = gyre::Awaits<Pending<view::Fetched>, Shortened>;
  static constexpr uint32_t shortens = 10;
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Order::Reader in, view::Done::Builder out) {
    ctx.tell<view::Load>(gyre::Address<Store>{in.getTo()}, [&](view::Load::Builder load) {
      load.setRepeats(true);
      fill_load(load, ctx.key(), 0, in.getWords(), ctx.rank(), ctx.size());
    });
    out.setCount(1);
  }
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Load::Reader in) {
    ctx.forward(gyre::Address<Store>{ctx.key()}, in);
  }
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Ask::Reader in, view::Answer::Builder) {
    const Pending<view::Fetched> state{ctx.later<view::Answer>(), in.getSeed(),
                                       in.getTells() ? uint64_t(Pending<view::Fetched>::tells) : 0};
    ctx.ask<view::Fetch>(
        gyre::Address<Store>{in.getStore()},
        [&](view::Fetch::Builder fetch) {
          fetch.setSeed(in.getSeed());
          fetch.setWords(in.getWords());
        },
        state);
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Pending<view::Fetched> state, view::Fetched::Reader in) {
    const auto words = in.getWords();
    ctx.answer(state.promise, [&](view::Answer::Builder out) {
      out.setSeed(in.getSeed());
      out.setCount(words.size());
      const auto list = out.initWords((state.flags & state.tells) != 0 ? 0 : words.size());
      for (uint32_t i = ctx.rank(); i < list.size(); i += ctx.size()) list.set(i, words[i]);
    });
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Pending<view::Fetched> state, gyre::ErrorBody error) {
    ctx.answer(state.promise, [&](view::Answer::Builder out) { out.setStatus(uint32_t(error.status)); });
  }
  // Promises an answer that is a tenth of the request.
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Mirror::Reader in, view::Mirrored::Builder) {
    ctx.ask<view::Fetch>(
        gyre::Address<Store>{ctx.key()},
        [&](view::Fetch::Builder fetch) {
          fetch.setSeed(in.getSeed());
          fetch.setWords(in.getWords().size() / shortens);
        },
        Shortened{ctx.later<view::Mirrored>(), in.getSeed()});
  }
  GYRE_DEVICE void on_reply(gyre::Asking<1>& ctx, Shortened state, view::Fetched::Reader in) {
    const auto words = in.getWords();
    ctx.answer(state.promise, [&](view::Mirrored::Builder out) {
      out.setSeed(state.seed);
      const auto list = out.initWords(words.size());
      for (uint32_t i = ctx.rank(); i < list.size(); i += ctx.size()) list.set(i, words[i]);
    });
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Shortened state, gyre::ErrorBody error) {
    ctx.fail(state.promise, error.detail);
  }
};

/// Sends loads, and asks.
struct Sender {
  using Handles = gyre::Handles<view::Order, view::Ask>;
  using Answering = gyre::Asking<2, gyre::LargeMessages>;
  static constexpr bool rollback_on_error = true;
  static constexpr uint32_t most = 8, most_sent = 32, most_keys = 8, too_large = 100'000;

  uint64_t sent[most_keys] = {};  // loads, by the receiver's key
  gyre::Timer timers[most] = {};
  uint32_t bad = 0;

  GYRE_DEVICE void on(gyre::Asking<most_sent, gyre::Timers, gyre::LargeMessages>& ctx, view::Order::Reader in,
                      view::Done::Builder out) {
    const uint32_t count = in.getCount();
    switch (in.getHow()) {
      case view::How::TELL:
        for (uint32_t n = 0; n < count; ++n) {
          const uint64_t to = in.getTo() + n * in.getStride(), number = next(ctx, to);
          ctx.tell<view::Load>(gyre::Address<Store>{to}, [&](view::Load::Builder load) {
            fill_load(load, ctx.key(), number, in.getWords() + n * in.getMore(), ctx.rank(), ctx.size());
          });
        }
        break;
      case view::How::TELL_EACH: {
        const uint64_t first = sent[in.getTo() % most_keys];
        ctx.sync();
        if (ctx.rank() == 0) sent[in.getTo() % most_keys] += count;
        ctx.tell_each<view::Load>(
            count, [&](uint32_t) { return gyre::Address<Store>{in.getTo()}; },
            [&](uint32_t n, view::Load::Builder load) {
              fill_load(load, ctx.key(), first + n, in.getWords() + n * in.getMore(), 0, 1);
            });
        break;
      }
      case view::How::TELL_PORTER:
        for (uint32_t n = 0; n < count; ++n) {
          const uint64_t number = next(ctx, in.getTo());
          ctx.tell<view::Load>(gyre::Address<Porter>{in.getTo()}, [&](view::Load::Builder load) {
            fill_load(load, ctx.key(), number, in.getWords() + n * in.getMore(), ctx.rank(), ctx.size());
          });
        }
        break;
      case view::How::TELL_MODEST:
        ctx.tell<view::Load>(gyre::Address<Modest>{in.getTo()}, [&](view::Load::Builder load) {
          load.setRepeats(true);
          fill_load(load, ctx.key(), 0, in.getWords(), ctx.rank(), ctx.size());
        });
        break;
      case view::How::CANCEL_ALL:
        for (uint32_t n = 0; n < most; ++n) ctx.cancel(timers[n]);
        break;
      default:
        for (uint32_t n = 0; n < count; ++n) {
          const bool repeats = in.getHow() == view::How::PERIODIC;
          const uint64_t number = repeats ? n : next(ctx, in.getTo());
          const auto fill = [&](view::Load::Builder load) {
            load.setRepeats(repeats);
            fill_load(load, ctx.key(), number, in.getWords() + n * in.getMore(), ctx.rank(), ctx.size());
          };
          const gyre::Address<Store> to{in.getTo()};
          const auto delay = gyre::Duration::nanoseconds(in.getDelayNs() + n);
          const gyre::Timer timer = repeats ? ctx.send_every<view::Load>(delay, to, fill)
                                            : ctx.send_after<view::Load>(delay, to, fill);
          if (in.getHow() == view::How::CANCELLED) ctx.cancel(timer);
          if (ctx.rank() == 0) timers[n % most] = timer;
        }
    }
    out.setCount(count);
    if (in.getEnd() == view::End::FAIL_ALL) ctx.fail(7);
    if (in.getEnd() == view::End::FAIL_IN_ONE_THREAD && ctx.rank() == ctx.size() - 1) ctx.fail(8);
    if (in.getEnd() == view::End::SEND_TOO_LARGE) {
      ctx.tell<view::Load>(gyre::Address<Store>{in.getTo()}, [&](view::Load::Builder load) {
        fill_load(load, ctx.key(), 0, too_large, ctx.rank(), ctx.size());
      });
    }
    if (in.getEnd() == view::End::SEND_TOO_MANY) {
      for (uint32_t n = 0; n <= most_sent; ++n) {
        ctx.tell<view::Load>(gyre::Address<Store>{in.getTo()}, [&](view::Load::Builder load) {
          fill_load(load, ctx.key(), 0, in.getWords(), ctx.rank(), ctx.size());
        });
      }
    }
  }

  GYRE_DEVICE void on(gyre::Asking<1, gyre::LargeMessages>& ctx, view::Ask::Reader in,
                      view::Answer::Builder) {
    const auto promise = ctx.later<view::Answer>();
    const uint64_t flags = (in.getTells() ? uint64_t(Pending<view::Fetched>::tells) : 0) |
                           (in.getTwice() ? uint64_t(Pending<view::Fetched>::twice) : 0);
    if (in.getMirrors()) {
      const auto fill = [&](view::Mirror::Builder mirror) {
        mirror.setSeed(in.getSeed());
        mirror.setFails(in.getFails());
        const auto words = mirror.initWords(in.getWords());
        for (uint32_t i = ctx.rank(); i < words.size(); i += ctx.size())
          words.set(i, element(1, in.getSeed(), i));
      };
      const Pending<view::Mirrored> pending{promise, in.getSeed(), flags};
      if (in.getModest()) {
        ctx.ask<view::Mirror>(gyre::Address<Modest>{in.getStore()}, fill, pending);
      } else {
        ctx.ask<view::Mirror>(gyre::Address<Store>{in.getStore()}, fill, pending);
      }
    } else {
      ctx.ask<view::Fetch>(
          gyre::Address<Store>{in.getStore()},
          [&](view::Fetch::Builder fetch) {
            fetch.setSeed(in.getSeed());
            fetch.setWords(in.getWords());
            fetch.setFails(in.getFails());
          },
          Pending<view::Fetched>{promise, in.getSeed(), flags});
    }
  }
  GYRE_DEVICE void on_reply(Answering& ctx, Pending<view::Fetched> state, view::Fetched::Reader in) {
    answer(ctx, state, in.getSeed(), in.getWords());
  }
  GYRE_DEVICE void on_reply(Answering& ctx, Pending<view::Mirrored> state, view::Mirrored::Reader in) {
    answer(ctx, state, in.getSeed(), in.getWords());
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Pending<view::Fetched> state, gyre::ErrorBody error) {
    fail(ctx, state.promise, state.seed, error);
  }
  GYRE_DEVICE void on_failure(gyre::Asking<1>& ctx, Pending<view::Mirrored> state, gyre::ErrorBody error) {
    fail(ctx, state.promise, state.seed, error);
  }

 private:
  // The number of the next load to a store.
  template <class ContextType>
  GYRE_DEVICE uint64_t next(ContextType& ctx, uint64_t to) {
    const uint64_t number = sent[to % most_keys];
    ctx.sync();
    if (ctx.rank() == 0) sent[to % most_keys] = number + 1;
    ctx.sync();
    return number;
  }
  // Answers with the words of a reply, or with their number; says whether they are right.
  template <class State, class Words>
  GYRE_DEVICE void answer(Answering& ctx, const State& state, uint64_t seed, Words words) {
    if (ctx.rank() == 0) bad = 0;
    ctx.sync();
    bool right = seed == state.seed;
    for (uint32_t i = ctx.rank(); i < words.size(); i += ctx.size())
      right = right && words[i] == element(2, seed, i);
    if (!right) bad = 1;
    ctx.sync();
    const auto fill = [&](view::Answer::Builder out) {
      out.setSeed(seed);
      out.setCount(words.size());
      out.setWrong(bad);
      const auto list = out.initWords((state.flags & State::tells) != 0 ? 0 : words.size());
      for (uint32_t i = ctx.rank(); i < list.size(); i += ctx.size()) list.set(i, words[i]);
    };
    for (uint32_t n = (state.flags & State::twice) != 0 ? 2 : 1; n != 0; --n) ctx.answer(state.promise, fill);
  }
  GYRE_DEVICE static void fail(gyre::Asking<1>& ctx, gyre::Promise<view::Answer> promise, uint64_t seed,
                               gyre::ErrorBody error) {
    ctx.answer(promise, [&](view::Answer::Builder out) {
      out.setSeed(seed);
      out.setStatus(uint32_t(error.status));
    });
  }

 public:
  using Awaits = gyre::Awaits<Pending<view::Fetched>, Pending<view::Mirrored>>;
};

}  // namespace gyre_bodies
