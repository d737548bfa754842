// The timers of a worker: messages that its actors have it send later.
#pragma once

#include <gyre/device/worker/body_pool.hpp>
#include <gyre/device/worker/mail_memory.hpp>
#include <gyre/device/worker/mail_queues.hpp>
#include <gyre/device/worker/staging.hpp>

namespace gyre {

/// One place of the table. The message that its timer sends lies in the same place of another array.
struct TimerRecord {
  uint64_t id;         ///< Timer::id; 0: the place is free
  uint64_t due_ns;     ///< of deadline_clock_ns(): when it sends next
  uint64_t period_ns;  ///< from one message to the next; 0: it sends one
  uint64_t reserved;
};
static_assert(sizeof(TimerRecord) == MailLayout::timer_bytes, "MailLayout reserves room for timers");

/// The timers of one worker: a table without order. Each polling thread looks after its own places, on a GPU
/// eight of them: a search is eight loads that do not wait for each other. Collective over PollGroup; each
/// thread has an object of its own.
class TimerTable {
 public:
  enum : uint32_t { capacity = MailLayout::timers };
  /// Counts of timers; see WorkerLine.
  struct Counts {
    uint64_t set = 0, done = 0, cancelled = 0;
  };

  /// @param memory         of the worker: MailLayout::timer_table_bytes() bytes, zeroed
  /// @param message_words  from one message to the next
  /// @param staging        whose timers() and timer_request() it uses
  GYRE_DEVICE TimerTable(uint8_t* memory, uint32_t message_words, const Staging& staging)
      : records_(reinterpret_cast<TimerRecord*>(memory)),
        messages_(reinterpret_cast<uint32_t*>(memory + capacity * sizeof(TimerRecord))),
        message_words_(message_words),
        staging_(staging) {}
  TimerTable(const TimerTable&) = delete;
  TimerTable& operator=(const TimerTable&) = delete;

  GYRE_DEVICE const Counts& counts() const { return counts_; }
  /// Returns deadline_clock_ns(), the same in all threads.
  GYRE_DEVICE static uint64_t now_for_all() { return of_thread(deadline_clock_ns(), 0); }
  /// Whether any timer is set.
  GYRE_DEVICE bool any() const { return count_ != 0; }
  /// Nanoseconds until a timer may be due; 0: it may be now, ~0: none is set. Of a group of one thread.
  GYRE_DEVICE uint64_t ns_to_next(uint64_t now_ns) const {
    if (next_due_ns_ == never) return never;
    return next_due_ns_ > now_ns ? next_due_ns_ - now_ns : 0;
  }

  /// Sets or cancels a timer, as the handler in hand asked with its n-th staged message.
  /// @param now_ns  when the handler ended
  GYRE_DEVICE void obey(uint32_t n, uint64_t now_ns) {
    const TimerRequest request = staging_.timer_request(n);
    if (assert_warp_uniform(request.cancels != 0)) {
      const uint64_t id = request.id;
      cancel_each([id](const TimerRecord& timer, const uint32_t*) { return timer.id == id; });
    } else {
      set(request, staging_.message(n), now_ns);
    }
  }
  /// Takes timers that are due, the earliest first, until `most` are taken or none is due.
  /// @param take  take(n, message, body_bytes, ends): copies the n-th message, its timer's last if `ends`;
  ///              ends with a barrier. False, in all threads: it is lost, and the next one is the n-th
  /// @returns how many were taken
  template <class Take>
  GYRE_DEVICE_INLINE uint32_t take_due(uint32_t most, Take&& take) {
    const uint64_t now = now_for_all();
    if (!PollGroup::any(next_due_ns_ <= now)) return 0;
    uint32_t taken = 0;
    GYRE_ROLLED
    while (taken < most) {
      const uint32_t place = earliest_due(now);
      if (place == capacity) break;
      const uint32_t* const message = message_at(place);
      const bool ends = records_[place].period_ns == 0;
      taken += take(taken, message, MailHead::body_bytes(message[MailHead::size_word]), ends) ? 1 : 0;
      PollGroup::sync();  // every thread has read the record
      if (place % PollGroup::size() == PollGroup::rank()) advance(records_[place], now);
      counts_.done += ends ? 1 : 0;
      note_ended(ends ? 1 : 0);
    }
    return taken;
  }
  /// Cancels the timers of an actor that is gone.
  GYRE_DEVICE void cancel_of(uint32_t actor_type, uint64_t key) {
    if (!assert_warp_uniform(any())) return;
    cancel_each([actor_type, key](const TimerRecord&, const uint32_t* message) {
      return (message[0] | uint64_t(message[1]) << 32) == key &&
             MailHead::sender_type(message[MailHead::size_word]) == actor_type;
    });
  }
  /// Cancels all timers, and every timer that is set later.
  GYRE_DEVICE void drain() {
    drains_ = true;
    cancel_each([](const TimerRecord&, const uint32_t*) { return true; });
  }

 private:
  enum : uint64_t { never = ~uint64_t(0) };

  GYRE_DEVICE static uint64_t of_thread(uint64_t value, uint32_t rank) {
    const uint32_t low = PollGroup::broadcast_from(uint32_t(value), rank);
    return low | uint64_t(PollGroup::broadcast_from(uint32_t(value >> 32), rank)) << 32;
  }
  GYRE_DEVICE uint32_t* message_at(uint32_t place) const { return messages_ + place * message_words_; }
  // Returns the first of the calling thread's places that is free; `capacity` if none is. Not collective.
  GYRE_DEVICE uint32_t own_free_place() const {
    uint32_t place = PollGroup::rank();
    while (place < capacity && records_[place].id != 0) place += PollGroup::size();
    return place < capacity ? place : uint32_t(capacity);
  }
  GYRE_DEVICE void set(const TimerRequest& request, const uint32_t* message, uint64_t now_ns) {
    ++counts_.set;
    const uint32_t place = own_free_place();
    const uint32_t having = PollGroup::ballot(place < capacity);
    // The handler found room: there is none only where memory was overwritten.
    if (assert_warp_uniform(drains_ || having == 0)) {
      ++counts_.cancelled;
      if (staging_.layout.rights.sends_large) PooledBodies(staging_).end(message);
      return;
    }
    const uint32_t owner = detail::lowest_bit(having);
    uint32_t* const copy = message_at(PollGroup::broadcast_from(place, owner));
    copy_message(copy, message, MailHead::body_bytes(message[MailHead::size_word]));
    if (PollGroup::rank() == owner) {
      auto& envelope = *reinterpret_cast<Envelope*>(copy);
      const bool to_itself = envelope.key == envelope.correlation &&
                             envelope.actor_type == MailHead::sender_type(envelope.body_bytes);
      envelope.flags = uint8_t((envelope.flags & envelope_flags::out_of_line) |
                               (to_itself ? envelope_flags::timer : uint8_t(0)));
      const uint64_t due = now_ns + request.delay_ns;
      records_[place] = {request.id, due < now_ns ? never - 1 : due, request.period_ns, 0};
      if (records_[place].due_ns < next_due_ns_) next_due_ns_ = records_[place].due_ns;
    }
    ++count_;
    publish_count();
  }
  // Returns the place of the timer that is due first, of those that are; of several the one that was set
  // first. `capacity` if none is.
  GYRE_DEVICE uint32_t earliest_due(uint64_t now) {
    uint32_t mine = capacity;
    TimerRecord first{never, never, 0, 0};
    GYRE_ROLLED
    for (uint32_t place = PollGroup::rank(); place < capacity; place += PollGroup::size()) {
      const TimerRecord timer = records_[place];
      if (timer.id == 0 || !comes_before(timer.due_ns, timer.id, first.due_ns, first.id)) continue;
      first = timer;
      mine = place;
    }
    next_due_ns_ = first.due_ns;
    uint32_t earliest = capacity;
    uint64_t due_ns = never, id = never;
    GYRE_ROLLED
    for (uint32_t left = PollGroup::ballot(first.due_ns <= now); left != 0; left &= left - 1) {
      const uint32_t rank = detail::lowest_bit(left);
      const uint64_t other_due_ns = of_thread(first.due_ns, rank), other_id = of_thread(first.id, rank);
      const uint32_t place = PollGroup::broadcast_from(mine, rank);
      if (!comes_before(other_due_ns, other_id, due_ns, id)) continue;
      earliest = place;
      due_ns = other_due_ns;
      id = other_id;
    }
    return earliest;
  }
  GYRE_DEVICE static bool comes_before(uint64_t due_ns, uint64_t id, uint64_t other_due_ns,
                                       uint64_t other_id) {
    return due_ns < other_due_ns || (due_ns == other_due_ns && id < other_id);
  }
  // The timer has sent its message: ends it, or chooses its next time. A time that has passed is left out. Of
  // the thread that looks after the place.
  GYRE_DEVICE static void advance(TimerRecord& timer, uint64_t now) {
    if (timer.period_ns == 0) {
      timer.id = 0;
      return;
    }
    const uint64_t due = timer.due_ns + (now - timer.due_ns) / timer.period_ns * timer.period_ns;
    timer.due_ns = due + timer.period_ns < due ? never - 1 : due + timer.period_ns;
  }
  template <class Which>
  GYRE_DEVICE void cancel_each(Which&& which) {
    uint32_t cancelled = 0;
    GYRE_ROLLED
    for (uint32_t first = 0; first < capacity; first += PollGroup::size()) {
      const uint32_t place = first + PollGroup::rank();
      const bool ends = records_[place].id != 0 && which(records_[place], message_at(place));
      if (ends) records_[place].id = 0;
      cancelled += detail::count_bits(PollGroup::ballot(ends));
      if (!staging_.layout.rights.sends_large) continue;  // there are no bodies
      GYRE_ROLLED
      for (uint32_t left = PollGroup::ballot(ends && BodyPool::is_place(message_at(place))); left != 0;
           left &= left - 1) {
        PooledBodies(staging_).end(message_at(first + detail::lowest_bit(left)));
      }
    }
    counts_.cancelled += cancelled;
    note_ended(cancelled);
  }
  GYRE_DEVICE void note_ended(uint32_t n) {
    count_ -= n;
    publish_count();
  }
  // For handlers, which set none where there is no room.
  GYRE_DEVICE void publish_count() {
    PollGroup::sync();
    if (PollGroup::rank() == 0) staging_.timers() = count_;
    PollGroup::sync();
  }

  TimerRecord* records_;
  uint32_t* messages_;
  uint32_t message_words_;
  Staging staging_;
  uint32_t count_ = 0;            // of timers that are set
  uint64_t next_due_ns_ = never;  // not later than the next one in the calling thread's places
  bool drains_ = false;
  Counts counts_;
};

}  // namespace gyre
