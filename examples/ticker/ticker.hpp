// Instruments that publish their prices to subscribers, who come and go.
#pragma once

#include <gyre/device/asking.hpp>
#include <ticker/ticker.view.hpp>

namespace ticker {

inline constexpr uint64_t instruments = 8;
inline constexpr uint32_t most_subscribers = 16;  // of an instrument

/// Adds a price to a checksum, which depends on the order of prices. The program computes it, too.
GYRE_DEVICE constexpr uint64_t checksum_with(uint64_t checksum, uint32_t cents) {
  return (checksum ^ cents) * 0x100000001b3u;
}

// What a subscriber saw of an instrument.
struct Line {
  bool subscribed = false;
  uint32_t last = 0;
  uint64_t next = 0;  // the number of the price that should come next
  uint64_t prices = 0, checksum = 0, gaps = 0;
};

struct Instrument;

struct Subscriber {
  using Handles = gyre::Handles<view::Follow, view::Unfollow, view::Answer, view::Tick, view::SeenRequest>;
  // On a GPU up to 32 ticks for different subscribers are handled together, each by one thread.
  static constexpr bool keys_side_by_side = true;

  Line lines[instruments];

  // The program gets its reply once the instrument has answered. Until then the ask travels as a number.
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Follow::Reader in, view::Followed::Builder);
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Unfollow::Reader in, view::Followed::Builder);

  // Messages of one actor to another keep their order. So all prices before the answer are here, and those
  // after it come later.
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Answer::Reader in) {
    GYRE_CHECK(ctx.is_from<Instrument>());
    if (ctx.rank() == 0) {
      Line& line = lines[ctx.sender<Instrument>().key];
      if (line.subscribed && line.next != in.getNext()) ++line.gaps;
      line.subscribed = in.getSubscribed();
      line.next = in.getNext();
    }
    ctx.answer(gyre::Promise<view::Followed>{in.getCall()},
               [&](view::Followed::Builder followed) { followed.setOutcome(in.getOutcome()); });
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Tick::Reader in) {
    GYRE_CHECK(in.getInstrument() < instruments);
    if (ctx.rank() != 0) return;
    Line& line = lines[in.getInstrument()];
    if (!line.subscribed || line.next != in.getNumber()) ++line.gaps;
    line.next = in.getNumber() + 1;
    line.last = in.getCents();
    line.checksum = checksum_with(line.checksum, in.getCents());
    ++line.prices;
  }

  GYRE_DEVICE void on(gyre::Context&, view::SeenRequest::Reader in, view::Seen::Builder out) {
    GYRE_CHECK(in.getInstrument() < instruments);
    const Line& line = lines[in.getInstrument()];
    out.setPrices(line.prices);
    out.setLast(line.last);
    out.setChecksum(line.checksum);
    out.setGaps(line.gaps);
  }
};

struct Instrument {
  using Handles = gyre::Handles<view::Subscribe, view::Unsubscribe, view::Price>;

  uint64_t subscribers[most_subscribers] = {};  // their keys
  uint32_t count = 0;
  uint64_t next = 0;  // the number of the next price

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Subscribe::Reader in) {
    GYRE_CHECK(ctx.is_from<Subscriber>());
    const auto subscriber = ctx.sender<Subscriber>();
    const bool listed = place_of(subscriber.key) < count, full = count == most_subscribers;
    ctx.sync();  // every thread has read the list
    if (ctx.rank() == 0 && !listed && !full) subscribers[count++] = subscriber.key;
    const auto outcome = listed ? view::Outcome::ALREADY_SUBSCRIBED
                         : full ? view::Outcome::LIST_FULL
                                : view::Outcome::DONE;
    answer(ctx, subscriber, outcome, listed || !full, in.getCall());
  }

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Unsubscribe::Reader in) {
    GYRE_CHECK(ctx.is_from<Subscriber>());
    const auto subscriber = ctx.sender<Subscriber>();
    const uint32_t place = place_of(subscriber.key);
    const bool listed = place < count;
    ctx.sync();  // every thread has read the list
    if (ctx.rank() == 0 && listed) subscribers[place] = subscribers[--count];
    answer(ctx, subscriber, listed ? view::Outcome::DONE : view::Outcome::NOT_SUBSCRIBED, false,
           in.getCall());
  }

  GYRE_DEVICE void on(gyre::Sending<most_subscribers>& ctx, view::Price::Reader in) {
    const uint64_t number = next;
    // Each thread builds messages of its own: message n is for subscriber n of the list.
    ctx.tell_each<view::Tick>(
        count, [&](uint32_t n) { return gyre::Address<Subscriber>{subscribers[n]}; },
        [&](uint32_t, view::Tick::Builder tick) {
          tick.setInstrument(ctx.key());
          tick.setNumber(number);
          tick.setCents(in.getCents());
        });
    ctx.sync();  // every thread has read the number
    if (ctx.rank() == 0) ++next;
  }

 private:
  // Returns the subscriber's place in the list; `count` if it is not there.
  GYRE_DEVICE uint32_t place_of(uint64_t subscriber) const {
    uint32_t place = 0;
    while (place < count && subscribers[place] != subscriber) ++place;
    return place;
  }
  GYRE_DEVICE void answer(gyre::SendingContext& ctx, gyre::Address<Subscriber> to, view::Outcome outcome,
                          bool subscribed, uint64_t call) const {
    ctx.tell<view::Answer>(to, [&](view::Answer::Builder answer) {
      answer.setOutcome(outcome);
      answer.setSubscribed(subscribed);
      answer.setNext(next);
      answer.setCall(call);
    });
  }
};

GYRE_DEVICE inline void Subscriber::on(gyre::Asking<1>& ctx, view::Follow::Reader in,
                                       view::Followed::Builder) {
  GYRE_CHECK(in.getInstrument() < instruments);
  const auto promise = ctx.later<view::Followed>();
  ctx.tell<view::Subscribe>(gyre::Address<Instrument>{in.getInstrument()},
                            [&](view::Subscribe::Builder subscribe) { subscribe.setCall(promise.call); });
}
GYRE_DEVICE inline void Subscriber::on(gyre::Asking<1>& ctx, view::Unfollow::Reader in,
                                       view::Followed::Builder) {
  GYRE_CHECK(in.getInstrument() < instruments);
  const auto promise = ctx.later<view::Followed>();
  ctx.tell<view::Unsubscribe>(
      gyre::Address<Instrument>{in.getInstrument()},
      [&](view::Unsubscribe::Builder unsubscribe) { unsubscribe.setCall(promise.call); });
}

}  // namespace ticker
