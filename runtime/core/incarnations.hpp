// The cores that a runtime has one after the other. What clients and the Runtime hold.
#pragma once

#include <gyre/runtime/calls/thread_number.hpp>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/restart.hpp>
#include <gyre/runtime/system/asymmetric_fence.hpp>
#include <gyre/runtime/system/timed_mutex.hpp>
#include <gyre/runtime/telemetry/program_counts.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace gyre::detail {

/// The core that a thread with a number is using without a share of it; null where it uses none.
struct alignas(128) EntryMark {
  std::atomic<const Core*> core{nullptr};
};
extern constinit std::array<EntryMark, thread_numbers> entry_marks;  // by thread number

/// One runtime through its relaunches. Each launch makes a Core of its own, an incarnation: engine, region,
/// arena and call table are never used again after it failed. Counts add up here. Thread-safe.
///
/// Clients use the present core without a share of it: a count of users would be written by every thread for
/// each message. A thread marks which core it uses, as with a hazard pointer (Michael, 2004); relaunch()
/// frees a former core once no mark names it, and no call, buffer or reply keeps it.
class Incarnations : public std::enable_shared_from_this<Incarnations> {
 public:
  using MakeEngine = std::function<std::unique_ptr<Engine>()>;

  /// Takes the first incarnation.
  /// @param make_engine  makes the engine of each further one; empty: gyre::make_engine()
  /// @param recorder     of the first one's messages, for the further ones too; null: none is recorded
  explicit Incarnations(std::shared_ptr<Core> first, MakeEngine make_engine = {},
                        std::shared_ptr<Recorder> recorder = {});
  Incarnations(const Incarnations&) = delete;
  Incarnations& operator=(const Incarnations&) = delete;

  /// Returns the present core, with a share of it. For what is not on the message path: takes a lock.
  std::shared_ptr<Core> present() const;
  const ActorSet& actors() const { return actors_; }
  const Options& options() const { return options_; }

  /// Lets Options::restart work: a core that fails is replaced on the thread that noticed it.
  void allow_restarts();
  /// Replaces a failed core. See Runtime::relaunch().
  void relaunch(std::chrono::nanoseconds timeout);
  void on_restart(std::function<void(const Restart&)> callback);
  /// See Runtime::on().
  void on_told(uint64_t type_id, ToldHandler handler);
  /// Calls those handlers for what the actors of the present core send.
  void listen() { present()->listen(told_handlers_); }

  /// As Core's, with the counts of former incarnations. terminate() ends relaunching too.
  Termination terminate(std::chrono::nanoseconds timeout);
  Books books() const;
  Stats stats() const;
  uint32_t restarts() const;
  /// See Runtime::add_counts().
  AddedCounts add_counts(CountSection section, ProgramCounts::Read read);
  std::vector<DeadLetter> take_dead_letters();

 private:
  friend class Entered;
  class Replacing;

  // What former incarnations counted.
  struct Former {
    Books books;
    std::vector<std::vector<HandlerStats>> workers;  // by worker and handler
    std::vector<std::vector<ActorStats>> actors;     // by worker and type; none of them lives
    TransferStats writes, reads;
    uint32_t restarts = 0;
    uint64_t log_lines = 0, log_lines_dropped = 0;
  };

  void restart(const Core& failed) noexcept;
  size_t attempts_made();
  void note_attempt();
  bool gives_way(const Core& failed) const;
  bool back_off(const Core& failed, size_t attempts) const;
  bool lock_to_restart(const Core& failed);
  void replace(std::chrono::nanoseconds timeout);
  void add_former(const Termination& report, Core& core);
  void free_former();
  void tell(const Restart& restart) noexcept;

  const ForkGuard fork_;
  const std::shared_ptr<ProgramCounts> program_counts_ = std::make_shared<ProgramCounts>();
  const std::shared_ptr<ToldHandlers> told_handlers_ = std::make_shared<ToldHandlers>();
  const ActorSet actors_;
  const Options options_;
  const MakeEngine make_engine_;
  const std::shared_ptr<Recorder> recorder_;
  std::atomic<Core*> entered_;  // the present core, for Entered
  std::atomic<bool> ended_{false};
  TimedMutex relaunching_;                      // held while a core is replaced or ended
  std::atomic<const Core*> replaced_{nullptr};  // the failed core that a thread is replacing
  mutable std::mutex mutex_;                    // of what follows; held for moments
  std::shared_ptr<Core> present_;
  std::vector<std::shared_ptr<Core>> former_;  // that a thread may still use
  Former counted_;
  std::vector<DeadLetter> dead_letters_;  // that they left
  std::vector<int64_t> restarted_at_ns_;
  std::function<void(const Restart&)> on_restart_;
};

/// The present core, which is not freed while this lives. For the thread that makes it; made for each
/// message.
class Entered {
 public:
  explicit Entered(const Incarnations& incarnations) {
    const uint32_t thread = thread_number();
    if (thread < thread_numbers) [[likely]] {
      std::atomic<const Core*>& mark = entry_marks[thread].core;
      // Another runtime's message is being built: its mark stays. Relaxed: the thread's own word.
      if (mark.load(std::memory_order_relaxed) == nullptr) [[likely]] {
        Core* core = incarnations.entered_.load(std::memory_order_acquire);  // pairs with replace()
        for (;;) {
          // Dekker's pattern with free_former(): that thread sees the mark, or this one sees the next core.
          mark.store(core, std::memory_order_release);
          asymmetric_fence_light();
          Core* const now = incarnations.entered_.load(std::memory_order_acquire);  // pairs with replace()
          if (now == core) [[likely]]
            break;
          core = now;
        }
        core_ = core;
        mark_ = &mark;
        return;
      }
    }
    share_ = incarnations.present();
    core_ = share_.get();
  }
  ~Entered() {
    if (mark_ != nullptr) [[likely]]
      mark_->store(nullptr, std::memory_order_release);  // pairs with the load in free_former()
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  Core& operator*() const { return *core_; }
  Core* operator->() const { return core_; }
  /// Returns a share of the core.
  std::shared_ptr<Core> share() const { return core_->weak_from_this().lock(); }

 private:
  Core* core_ = nullptr;
  std::atomic<const Core*>* mark_ = nullptr;  // null: by a share
  std::shared_ptr<Core> share_;
};

}  // namespace gyre::detail
