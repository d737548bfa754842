// Instruments that publish their prices to subscribers, who come and go.
#pragma once

#include <gyre/device/asking.hpp>
#include <ticker/ticker.view.hpp>

namespace ticker {

inline constexpr uint64_t instruments = 8;

/// The prices of an instrument. Instruments do not know who has subscribed.
GYRE_DEVICE constexpr gyre::Topic<view::Tick> prices_of(uint64_t instrument) { return {instrument}; }

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

struct Instrument {
  using Handles = gyre::Handles<view::Ask, view::Price>;

  uint64_t next = 0;  // the number of the next price

  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Ask::Reader in);

  GYRE_DEVICE void on(gyre::Sending<1, gyre::ToMany>& ctx, view::Price::Reader in) {
    const uint64_t number = next;
    ctx.publish(prices_of(ctx.key()), [&](view::Tick::Builder tick) {
      tick.setInstrument(ctx.key());
      tick.setNumber(number);
      tick.setCents(in.getCents());
    });
    ctx.sync();  // every thread has read the number
    if (ctx.rank() == 0) ++next;
  }
};

struct Subscriber {
  using Handles = gyre::Handles<view::Follow, view::Answer, view::Tick, view::SeenRequest>;

  Line lines[instruments];

  // Asks the instrument how many prices it has published. The program gets its reply once the answer is here;
  // until then its ask travels as a number.
  GYRE_DEVICE void on(gyre::Asking<1>& ctx, view::Follow::Reader in, view::Followed::Builder out) {
    GYRE_CHECK(in.getInstrument() < instruments);
    if (lines[in.getInstrument()].subscribed != in.getEnds()) {
      out.setOutcome(in.getEnds() ? view::Outcome::NOT_SUBSCRIBED : view::Outcome::ALREADY_SUBSCRIBED);
      return;
    }
    const auto promise = ctx.later<view::Followed>();
    ctx.tell<view::Ask>(gyre::Address<Instrument>{in.getInstrument()},
                        [&](view::Ask::Builder ask) { ask.setCall(promise.call); });
  }

  // What one actor tells and publishes reaches another in the order of sending. So all prices that came
  // before the answer are here, and those after it come later: this is the moment to subscribe, or to leave.
  GYRE_DEVICE void on(gyre::Asking<2, gyre::ToMany>& ctx, view::Answer::Reader in) {
    GYRE_CHECK(ctx.is_from<Instrument>());
    const uint64_t instrument = ctx.sender<Instrument>().key;
    const bool begins = !lines[instrument].subscribed;
    if (begins) ctx.subscribe<Subscriber>(prices_of(instrument));
    if (!begins) ctx.unsubscribe(prices_of(instrument));
    ctx.answer(gyre::Promise<view::Followed>{in.getCall()}, [](view::Followed::Builder) {});
    ctx.sync();  // every thread has read the line
    if (ctx.rank() != 0) return;
    Line& line = lines[instrument];
    if (!begins && line.next != in.getNext()) ++line.gaps;
    line.subscribed = begins;
    line.next = in.getNext();
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

GYRE_DEVICE inline void Instrument::on(gyre::Sending<1>& ctx, view::Ask::Reader in) {
  GYRE_CHECK(ctx.is_from<Subscriber>());
  ctx.tell<view::Answer>(ctx.sender<Subscriber>(), [&](view::Answer::Builder answer) {
    answer.setNext(next);
    answer.setCall(in.getCall());
  });
}

}  // namespace ticker
