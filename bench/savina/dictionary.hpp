// Savina's concurrent dictionary: clients read and write the entries of one actor.
#pragma once

#include <bench/savina/collector.hpp>
#include <bench/savina/dictionary.view.hpp>

namespace gyre_savina::dictionary {

/// Limits how many requests of a client are under way.
inline constexpr uint32_t most_under_way = 31;
inline constexpr uint32_t clients = 20, entries = 4096, percent_written = 10;
/// Limits the requests of a client.
inline constexpr uint32_t most_requests = 1 << 14;

struct Operation {
  uint32_t key;
  uint32_t value;  // to write; 0: the entry is read
};
/// Returns request number `step` of the client with that key of an actor. No two write the same value.
GYRE_DEVICE constexpr Operation operation(uint64_t client, uint32_t step) {
  const uint64_t hash = mix(uint32_t(client), step);
  const bool writes = (hash >> 32) % 100 < percent_written;
  return {uint32_t(hash % entries), writes ? uint32_t(client % clients) * most_requests + step + 1 : 0};
}
/// Says whether an entry of that key may have the value: nobody has written it yet, or the request that the
/// value names did.
GYRE_DEVICE constexpr bool is_possible(uint64_t instance, uint32_t key, uint32_t value) {
  if (value == 0) return true;
  const Operation written =
      operation(instance * clients + (value - 1) / most_requests, (value - 1) % most_requests);
  return written.key == key && written.value == value;
}

struct Client;

/// Has the instance as its key. Its client c has the key `instance * clients + c`. The result depends on all
/// values that were written, and on how many answers were possible.
struct Dictionary {
  using Handles = gyre::Handles<run::view::Start, view::Request, view::LastRequest, view::Leave>;
  static constexpr bool keys_side_by_side = true;

  uint32_t values[entries] = {};
  Operation answers[clients][most_under_way] = {};  // to the requests of rows whose last one has not come
  uint32_t counts[clients] = {};
  uint64_t written = 0;  // sum of hashes
  uint32_t valid = 0, left = 0;

  GYRE_DEVICE void on(gyre::Sending<clients>& ctx, run::view::Start::Reader in) {
    ctx.tell_each<view::Begin>(
        clients, [&](uint32_t n) { return gyre::Address<Client>{ctx.key() * clients + n}; },
        [&](uint32_t, view::Begin::Builder begin) {
          begin.setMessages(in.getMessages());
          begin.setUnderWay(in.getUnderWay());
        });
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Request::Reader in) {
    if (ctx.rank() != 0) return;
    GYRE_CHECK(in.getClient() < clients && counts[in.getClient()] < most_under_way);
    apply(in);
  }
  GYRE_DEVICE void on(gyre::Sending<most_under_way>& ctx, view::LastRequest::Reader in) {
    const uint32_t client = in.getClient();
    GYRE_CHECK(client < clients && counts[client] < most_under_way);
    ctx.sync();  // every thread has read the state
    if (ctx.rank() == 0) apply(in);
    ctx.sync();
    const uint32_t others = counts[client] - 1;
    const gyre::Address<Client> to{ctx.key() * clients + client};
    ctx.tell_each<view::Answer>(
        others, [&](uint32_t) { return to; },
        [&](uint32_t n, view::Answer::Builder answer) { fill(answers[client][n], answer); });
    ctx.tell<view::LastAnswer>(
        to, [&](view::LastAnswer::Builder answer) { fill(answers[client][others], answer); });
    ctx.sync();
    if (ctx.rank() == 0) counts[client] = 0;
  }
  GYRE_DEVICE void on(gyre::Sending<1>& ctx, view::Leave::Reader in) {
    if (ctx.rank() == 0) {
      valid += in.getValid();
      ++left;
    }
    ctx.sync();
    if (left == clients) report(ctx, ctx.key(), written + valid);
  }

 private:
  template <class Reader>
  GYRE_DEVICE void apply(const Reader& in) {
    uint32_t& entry = values[in.getKey() % entries];
    if (in.getValue() != 0) {
      entry = in.getValue();
      written += mix(entry);
    }
    answers[in.getClient()][counts[in.getClient()]++] = {in.getKey(), entry};
  }
  template <class Builder>
  GYRE_DEVICE static void fill(const Operation& from, Builder& answer) {
    answer.setKey(uint16_t(from.key));
    answer.setValue(from.value);
  }
};

/// Sends `messages` requests, in rows of `under_way`: the next row when the last one is answered. All but the
/// last message of a row are handled side by side, for their handlers send nothing.
struct Client {
  using Handles = gyre::Handles<view::Begin, view::Answer, view::LastAnswer>;
  static constexpr bool keys_side_by_side = true;

  uint32_t next = 0;  // the next row's first request
  uint32_t messages = 0, under_way = 0;
  uint32_t valid = 0;

  GYRE_DEVICE void on(gyre::Sending<most_under_way>& ctx, view::Begin::Reader in) {
    if (ctx.rank() == 0) {
      messages = in.getMessages();
      under_way = in.getUnderWay();
    }
    ctx.sync();
    send_row(ctx);
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::Answer::Reader in) {
    if (ctx.rank() == 0) check(ctx.key(), in);
  }
  GYRE_DEVICE void on(gyre::Sending<most_under_way>& ctx, view::LastAnswer::Reader in) {
    if (ctx.rank() == 0) check(ctx.key(), in);
    ctx.sync();
    if (next < messages) return send_row(ctx);
    ctx.tell<view::Leave>(gyre::Address<Dictionary>{ctx.key() / clients},
                          [&](view::Leave::Builder leave) { leave.setValid(valid); });
  }

 private:
  template <class Reader>
  GYRE_DEVICE void check(uint64_t key, const Reader& in) {
    if (is_possible(key / clients, in.getKey(), in.getValue())) ++valid;
  }
  GYRE_DEVICE void send_row(gyre::Sending<most_under_way>& ctx) {
    const uint32_t first = next, left = messages - first;
    const uint32_t others = (left < under_way ? left : under_way) - 1;
    const uint64_t key = ctx.key();
    const gyre::Address<Dictionary> to{key / clients};
    ctx.sync();  // every thread has read the state
    ctx.tell_each<view::Request>(
        others, [&](uint32_t) { return to; },
        [&](uint32_t n, view::Request::Builder request) { fill(key, first + n, request); });
    ctx.tell<view::LastRequest>(
        to, [&](view::LastRequest::Builder request) { fill(key, first + others, request); });
    if (ctx.rank() == 0) next = first + others + 1;
  }
  template <class Builder>
  GYRE_DEVICE static void fill(uint64_t client, uint32_t step, Builder& request) {
    const Operation planned = operation(client, step);
    request.setClient(uint16_t(client % clients));
    request.setKey(uint16_t(planned.key));
    request.setValue(planned.value);
  }
};

}  // namespace gyre_savina::dictionary
