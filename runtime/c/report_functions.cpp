// gyre.h: what there is to know of a runtime, and its dead letters.
#include <fmt/format.h>
#include <gyre/runtime/c/objects.hpp>

using namespace gyre;
using namespace gyre::c;

namespace {

static_assert(GYRE_LAUNCHED == int(Lifecycle::launched) && GYRE_ACTIVE == int(Lifecycle::active) &&
              GYRE_LIFECYCLE_INACTIVE == int(Lifecycle::inactive) &&
              GYRE_LIFECYCLE_DRAINING == int(Lifecycle::draining) &&
              GYRE_LIFECYCLE_TERMINATED == int(Lifecycle::terminated) &&
              GYRE_LIFECYCLE_FAILED == int(Lifecycle::failed));

gyre_stats stats_of(const Runtime& runtime) {
  const Books books = runtime.books();
  const Ledger ledger = runtime.ledger();
  gyre_stats stats{};
  stats.asks_accepted = books.asks.accepted;
  stats.asks_answered = books.asks.answered;
  stats.asks_error_replies = books.asks.error_replies;
  stats.asks_timed_out = books.asks.timed_out;
  stats.asks_dead_letters = books.asks.dead_letters;
  stats.asks_cancelled = books.asks.cancelled;
  stats.asks_late_replies = books.asks.late_replies;
  stats.asks_in_flight = books.asks.in_flight();
  stats.tells_accepted = books.tells.accepted;
  stats.tells_processed = books.tells.processed;
  stats.tells_dead_letters = books.tells.dead_letters;
  stats.tells_in_flight = books.tells.in_flight();
  stats.dead_letters_dropped = books.dead_letters_dropped;
  stats.corrupt_slots = books.corrupt_slots;
  stats.asks_inferred = books.asks.inferred;
  stats.tells_inferred = books.tells.inferred;
  stats.mail_sent = books.mail.sent;
  stats.mail_processed = books.mail.processed;
  stats.mail_failed = books.mail.failed;
  stats.mail_refused = books.mail.refused;
  stats.mail_lost = books.mail.lost;
  stats.told_sent = books.told.sent;
  stats.told_handled = books.told.handled;
  stats.told_dropped = books.told.dropped;
  stats.told_refused = books.told.refused;
  stats.timers_set = books.timers.set;
  stats.timers_done = books.timers.done;
  stats.timers_cancelled = books.timers.cancelled;
  stats.timers_lost = books.timers.lost;
  for (uint32_t kind = 0; kind < std::size(stats.buffers_in_use); ++kind) {
    stats.buffers_in_use[kind] = ledger.in_use[kind].buffers;
    stats.buffer_bytes_in_use[kind] = ledger.in_use[kind].bytes;
    stats.buffers_freed[kind] = ledger.retired[kind].buffers;
    stats.buffer_bytes_freed[kind] = ledger.retired[kind].bytes;
  }
  const MemoryStats memory = runtime.stats().memory;
  stats.region_bytes = memory.region;
  stats.bar_bytes = memory.bar;
  stats.actor_bytes = memory.actors;
  stats.module_bytes = memory.modules;
  stats.buffer_table_bytes = memory.buffer_table;
  stats.device_bytes = memory.device_total;
  stats.device_free_bytes = memory.device_free;
  const Ledger::Count& imported = ledger.used(MemoryKind::imported);
  const Ledger::Count& released_later = ledger.freed(MemoryKind::imported);
  stats.imported_in_use = imported.buffers;
  stats.imported_bytes_in_use = imported.bytes;
  stats.imported_freed = released_later.buffers;
  stats.imported_bytes_freed = released_later.bytes;
  return stats;
}
static_assert(memory_kinds == 4);

std::string json_of(const gyre_stats& stats) {
  std::string text = "{";
  const auto add = [&text](const char* name, const std::string& value) {
    text += fmt::format("{}\"{}\": {}", text.size() > 1 ? ", " : "", name, value);
  };
  const auto list = [](const uint64_t(&values)[3]) {
    return fmt::format("[{}, {}, {}]", values[0], values[1], values[2]);
  };
#define GYRE_C_ADD(field) add(#field, std::to_string(stats.field))
  GYRE_C_ADD(asks_accepted);
  GYRE_C_ADD(asks_answered);
  GYRE_C_ADD(asks_error_replies);
  GYRE_C_ADD(asks_timed_out);
  GYRE_C_ADD(asks_dead_letters);
  GYRE_C_ADD(asks_cancelled);
  GYRE_C_ADD(asks_late_replies);
  GYRE_C_ADD(asks_in_flight);
  GYRE_C_ADD(tells_accepted);
  GYRE_C_ADD(tells_processed);
  GYRE_C_ADD(tells_dead_letters);
  GYRE_C_ADD(tells_in_flight);
  GYRE_C_ADD(dead_letters_dropped);
  GYRE_C_ADD(corrupt_slots);
  GYRE_C_ADD(asks_inferred);
  GYRE_C_ADD(tells_inferred);
  add("buffers_in_use", list(stats.buffers_in_use));
  add("buffer_bytes_in_use", list(stats.buffer_bytes_in_use));
  add("buffers_freed", list(stats.buffers_freed));
  add("buffer_bytes_freed", list(stats.buffer_bytes_freed));
  GYRE_C_ADD(region_bytes);
  GYRE_C_ADD(bar_bytes);
  GYRE_C_ADD(actor_bytes);
  GYRE_C_ADD(module_bytes);
  GYRE_C_ADD(buffer_table_bytes);
  GYRE_C_ADD(device_bytes);
  GYRE_C_ADD(device_free_bytes);
  GYRE_C_ADD(imported_in_use);
  GYRE_C_ADD(imported_bytes_in_use);
  GYRE_C_ADD(imported_freed);
  GYRE_C_ADD(imported_bytes_freed);
  GYRE_C_ADD(mail_sent);
  GYRE_C_ADD(mail_processed);
  GYRE_C_ADD(mail_failed);
  GYRE_C_ADD(mail_refused);
  GYRE_C_ADD(mail_lost);
  GYRE_C_ADD(told_sent);
  GYRE_C_ADD(told_handled);
  GYRE_C_ADD(told_dropped);
  GYRE_C_ADD(told_refused);
  GYRE_C_ADD(timers_set);
  GYRE_C_ADD(timers_done);
  GYRE_C_ADD(timers_cancelled);
  GYRE_C_ADD(timers_lost);
#undef GYRE_C_ADD
  return text + "}";
}

// Of a name that may be empty, and then has no text.
const char* text_of(std::string_view name) { return name.empty() ? "" : name.data(); }

}  // namespace

gyre_status gyre_runtime_info(gyre_runtime runtime, gyre_info* info) {
  const char* const doing = "gyre_runtime_info";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    GYRE_C_TRY(check_struct(doing, "info", info, sizeof *info));
    const Runtime& of = used->runtime;
    gyre_info filled{};
    filled.engine = gyre_engine(of.engine());
    filled.transport = gyre_transport(of.transport());
    filled.state = gyre_lifecycle(of.state());
    filled.workers = of.options().workers;
    filled.slot_body_bytes = used->client.body_capacity();
    filled.from_cache = of.timings().compiled_from_cache;
    filled.max_body_bytes = used->client.max_body_bytes();
    filled.region_bytes = of.region_bytes();
    filled.uptime_s = of.uptime_s();
    filled.compile_ms = of.timings().compile_ms;
    filled.launch_ms = of.timings().launch_ms;
    filled.compiled_ahead = of.timings().compiled_ahead;
    write_struct(info, filled);
    return GYRE_OK;
  });
}

gyre_status gyre_runtime_text(gyre_runtime runtime, int32_t which, char* buffer, size_t capacity,
                              size_t* size) {
  const char* const doing = "gyre_runtime_text";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    const Runtime& of = used->runtime;
    switch (which) {
      case GYRE_TEXT_DEVICE_NAME:
        return give_text(doing, of.device_name(), buffer, capacity, size);
      case GYRE_TEXT_TRANSPORT_REASON:
        return give_text(doing, of.transport_reason(), buffer, capacity, size);
      case GYRE_TEXT_FAILURE:
        return give_text(doing, of.failure(), buffer, capacity, size);
      case GYRE_TEXT_STATS:
        return give_text(doing, json_of(stats_of(of)), buffer, capacity, size);
      default:
        return invalid(
            doing, fmt::format("which is {}; give GYRE_TEXT_DEVICE_NAME to GYRE_TEXT_STATS (0 to 3)", which));
    }
  });
}

gyre_status gyre_runtime_handler(gyre_runtime runtime, size_t index, gyre_handler* handler) {
  const char* const doing = "gyre_runtime_handler";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    GYRE_C_TRY(check_struct(doing, "handler", handler, sizeof *handler));
    const ActorSet& actors = used->runtime.actors();
    if (index >= actors.handlers().size()) {
      return invalid(
          doing, fmt::format("there is no handler {}: the actors have {}", index, actors.handlers().size()));
    }
    const Handler& found = actors.handlers()[index];
    write_struct(handler, gyre_handler{0, text_of(actors.actor_name(found.actor_type)),
                                       text_of(actors.message_name(found.actor_type, found.message_type)),
                                       found.request, found.response});
    return GYRE_OK;
  });
}

gyre_status gyre_runtime_stats(gyre_runtime runtime, gyre_stats* stats) {
  const char* const doing = "gyre_runtime_stats";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    GYRE_C_TRY(check_struct(doing, "stats", stats, sizeof *stats));
    write_struct(stats, stats_of(used->runtime));
    return GYRE_OK;
  });
}

gyre_status gyre_take_dead_letters(gyre_runtime runtime, gyre_dead_letters* letters, size_t* count) {
  const char* const doing = "gyre_take_dead_letters";
  return guarded(doing, [&]() -> gyre_status {
    Use<Runtimes> used;
    GYRE_C_TRY(use<Runtimes>(doing, runtime, used));
    if (letters == nullptr || count == nullptr) {
      return invalid(doing, letters == nullptr ? "letters is null" : "count is null");
    }
    DeadLetterList list{used->runtime.take_dead_letters(), {}};
    for (const DeadLetter& letter : list.letters) list.texts.push_back(letter.text());
    const size_t taken = list.letters.size();
    *letters = DeadLetterLists::table().add(std::move(list));
    *count = taken;
    return GYRE_OK;
  });
}

gyre_status gyre_dead_letter_at(gyre_dead_letters letters, size_t index, gyre_dead_letter* letter) {
  const char* const doing = "gyre_dead_letter_at";
  return guarded(doing, [&]() -> gyre_status {
    Use<DeadLetterLists> used;
    GYRE_C_TRY(use<DeadLetterLists>(doing, letters, used));
    GYRE_C_TRY(check_struct(doing, "letter", letter, sizeof *letter));
    if (index >= used->letters.size()) {
      return invalid(doing,
                     fmt::format("there is no letter {}: the list has {}", index, used->letters.size()));
    }
    const DeadLetter& found = used->letters[index];
    gyre_dead_letter filled{};
    filled.reason = gyre_status(found.reason);
    filled.is_ask = (found.envelope.flags & envelope_flags::ask) != 0;
    filled.key = found.envelope.key;
    filled.actor = found.actor.c_str();
    filled.message = found.message_type.c_str();
    filled.text = used->texts[index].c_str();
    filled.body = found.body.empty() ? nullptr : found.body.data();
    filled.body_size = found.body.size();
    write_struct(letter, filled);
    return GYRE_OK;
  });
}

gyre_status gyre_dead_letters_release(gyre_dead_letters letters) {
  return release<DeadLetterLists>("gyre_dead_letters_release", letters);
}
