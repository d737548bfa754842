#include <fmt/format.h>
#include <gyre/runtime/core/incarnations.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/system/cancellation.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>

namespace gyre::detail {

namespace {

constexpr std::chrono::milliseconds first_pause{100}, longest_pause{5'000};
constexpr std::chrono::seconds ending_timeout{5};  // for what a failed core has left

template <class Log>
void keep_last(Log& log, Log more) {
  log.insert(log.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  if (log.size() > DeadLetters::kept) log.erase(log.begin(), log.end() - std::ptrdiff_t(DeadLetters::kept));
}

TransferStats sum(const TransferStats& a, const TransferStats& b) {
  return {a.copies + b.copies, a.bytes + b.bytes, a.ns + b.ns};
}

}  // namespace

constinit std::array<EntryMark, thread_numbers> entry_marks{};

// Says which core its thread replaces. That thread waits for the core's watcher: it must give way.
class Incarnations::Replacing {
 public:
  Replacing(std::atomic<const Core*>& replaced, const Core& core) : replaced_(replaced) {
    replaced_.store(&core, std::memory_order_release);  // pairs with the load in gives_way()
  }
  ~Replacing() { replaced_.store(nullptr, std::memory_order_relaxed); }
  Replacing(const Replacing&) = delete;
  Replacing& operator=(const Replacing&) = delete;

 private:
  std::atomic<const Core*>& replaced_;
};

Incarnations::Incarnations(std::shared_ptr<Core> first, MakeEngine make_engine,
                           std::shared_ptr<Recorder> recorder)
    : actors_(first->actors()),
      options_(first->options()),
      make_engine_(std::move(make_engine)),
      recorder_(std::move(recorder)),
      entered_(first.get()),
      present_(std::move(first)) {}

std::shared_ptr<Core> Incarnations::present() const {
  // A child of fork() may find the lock held by a thread that it does not have; nothing changes there.
  if (fork_.forked()) return entered_.load(std::memory_order_relaxed)->shared_from_this();
  const std::lock_guard lock(mutex_);
  return present_;
}

void Incarnations::allow_restarts() {
  if (options_.restart.times == 0) return;
  const std::shared_ptr<Core> core = present();
  core->on_failure([weak = weak_from_this(), failed = core.get()] {
    if (const auto self = weak.lock()) self->restart(*failed);
  });
}

void Incarnations::on_restart(std::function<void(const Restart&)> callback) {
  const std::lock_guard lock(mutex_);
  on_restart_ = std::move(callback);
}

void Incarnations::on_told(uint64_t type_id, ToldHandler handler) {
  present()->refuse_if_forked("setting a handler of messages to the host");
  if (!actors_.rights().tells_host) {
    throw Error(
        "setting a handler of messages to the host: no handler of these actors tells the host; its context "
        "says so: gyre::Sending<N, gyre::ToHost>& ctx");
  }
  told_handlers_->set(type_id, std::move(handler));
}

// On the thread that watches the engine which failed.
void Incarnations::restart(const Core& failed) noexcept {
  for (size_t attempts = attempts_made(); attempts < options_.restart.times; attempts = attempts_made()) {
    if (!back_off(failed, attempts) || !lock_to_restart(failed)) return;
    const std::lock_guard lock(relaunching_, std::adopt_lock);
    if (present().get() != &failed) return;
    try {
      note_attempt();
      replace(options_.timeout);
      return;
    } catch (const std::exception& error) {
      log(LogLevel::error, [&] { return fmt::format("restarting the engine: {}", error.what()); });
    }
  }
  if (ended_.load(std::memory_order_acquire)) return;  // pairs with terminate()
  log(LogLevel::error, [&] {
    return fmt::format(
        "restarting the engine: {} times within {} ms are the most (Options::restart); it stays failed",
        options_.restart.times, options_.restart.within.count());
  });
}

// Within Options::restart.within.
size_t Incarnations::attempts_made() {
  const int64_t now_ns = host_now_ns(), within_ns = std::chrono::nanoseconds(options_.restart.within).count();
  const std::lock_guard lock(mutex_);
  std::erase_if(restarted_at_ns_, [&](int64_t at_ns) { return now_ns - at_ns > within_ns; });
  return restarted_at_ns_.size();
}

void Incarnations::note_attempt() {
  const std::lock_guard lock(mutex_);
  restarted_at_ns_.push_back(host_now_ns());
}

// True where another thread replaces this core, or ends the runtime: it waits until this thread has ended.
bool Incarnations::gives_way(const Core& failed) const {
  // Pair with the stores in terminate() and Replacing.
  return ended_.load(std::memory_order_acquire) || replaced_.load(std::memory_order_acquire) == &failed;
}

// The first attempt comes at once, each other after twice the pause. False where it is not to be made.
bool Incarnations::back_off(const Core& failed, size_t attempts) const {
  if (attempts == 0) return true;
  const auto pause = std::min<std::chrono::milliseconds>(
      first_pause * (1 << std::min<size_t>(attempts - 1, 10)), longest_pause);
  const int64_t until_ns = host_now_ns() + std::chrono::nanoseconds(pause).count();
  while (host_now_ns() < until_ns) {
    if (gives_way(failed)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Waits while the thread that launched this core still calls what on_restart() was given.
bool Incarnations::lock_to_restart(const Core& failed) {
  while (!relaunching_.try_lock_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(1))) {
    if (gives_way(failed)) return false;
  }
  return true;
}

void Incarnations::relaunch(std::chrono::nanoseconds timeout) {
  if (fork_.forked())
    throw Error("relaunching a runtime: " + Failure{Status::forked}.message(), Status::forked);
  const CancellationDeferred deferred;
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  if (!relaunching_.try_lock_until(
          std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)))) {
    throw Error(
        fmt::format("relaunching a runtime: another thread did not finish that within {} ms; wait for it",
                    microseconds(timeout) / 1000));
  }
  const std::lock_guard lock(relaunching_, std::adopt_lock);
  replace(timeout);
}

void Incarnations::replace(std::chrono::nanoseconds timeout) {
  if (ended_.load(std::memory_order_acquire)) {  // pairs with terminate()
    throw Error("relaunching a runtime: it was terminated; launch another", Status::terminated);
  }
  const std::shared_ptr<Core> old = present();
  if (old->state() != Lifecycle::failed) {
    throw Error(
        fmt::format("relaunching a runtime: its engine works (state {}); only a failed one is replaced",
                    name(old->state())));
  }
  const int64_t began_ns = host_now_ns();
  const Replacing replacing(replaced_, *old);
  const Termination report = old->terminate(std::max<std::chrono::nanoseconds>(timeout, ending_timeout));
  std::unique_ptr<Engine> engine = make_engine_ ? make_engine_() : make_engine(actors_, options_);
  Timings timings = timings_of(*engine);
  const std::shared_ptr<Core> next = make_core(actors_, options_, std::move(engine));
  timings.launch_ms = double(host_now_ns() - began_ns) * 1e-6 - timings.compile_ms;
  next->set_timings(timings);
  if (recorder_) recorder_->relaunched();
  next->record(recorder_);
  Restart restart;
  restart.cause = old->failure();
  {
    const std::lock_guard lock(mutex_);
    // terminate() may not have waited for this core.
    if (ended_.load(std::memory_order_relaxed)) {  // mutex_ orders it after the store in terminate()
      throw Error("relaunching a runtime: it was terminated meanwhile; launch another", Status::terminated);
    }
    add_former(report, *old);
    former_.push_back(std::move(present_));
    present_ = next;
    restart.number = ++counted_.restarts;
    entered_.store(next.get(), std::memory_order_release);  // pairs with the loads in Entered
  }
  allow_restarts();
  next->watch_engine();
  next->listen(told_handlers_);
  free_former();
  restart.down_ms = double(host_now_ns() - began_ns) * 1e-6;
  log(LogLevel::warning, [&] {
    return fmt::format("the engine was launched again in {:.0f} ms (restart {}): {}", restart.down_ms,
                       restart.number, restart.cause);
  });
  tell(restart);
}

// For a thread that holds the lock.
void Incarnations::add_former(const Termination& report, Core& core) {
  counted_.books += report.books;
  const Stats stats = core.stats();
  counted_.workers.resize(stats.workers.size());
  counted_.actors.resize(stats.workers.size());
  for (size_t worker = 0; worker < stats.workers.size(); ++worker) {
    auto& sums = counted_.workers[worker];
    const auto& handlers = stats.workers[worker].handlers;
    if (sums.empty()) sums.resize(handlers.size());
    for (size_t n = 0; n < handlers.size() && n < sums.size(); ++n) sums[n] += handlers[n];
    auto& types = counted_.actors[worker];
    const auto& actors = stats.workers[worker].actors;
    if (types.empty()) types.resize(actors.size());
    for (size_t n = 0; n < actors.size() && n < types.size(); ++n) {
      types[n] += actors[n];
      types[n].living = 0;
    }
  }
  counted_.writes = sum(counted_.writes, stats.writes);
  counted_.reads = sum(counted_.reads, stats.reads);
  counted_.log_lines += stats.log_lines;
  counted_.log_lines_dropped += stats.log_lines_dropped;
  keep_last(dead_letters_, core.take_dead_letters());
}

// Frees the former cores that no thread uses any more. The others wait for the next relaunch, or the end.
void Incarnations::free_former() {
  if (!asymmetric_fence_heavy()) return;  // pairs with asymmetric_fence_light() in Entered
  std::vector<std::shared_ptr<Core>> unused;
  {
    const std::lock_guard lock(mutex_);
    for (auto& core : former_) {
      const bool used = std::any_of(entry_marks.begin(), entry_marks.end(), [&](const EntryMark& mark) {
        return mark.core.load(std::memory_order_acquire) == core.get();  // pairs with the store in ~Entered
      });
      if (!used) unused.push_back(std::move(core));
    }
    std::erase(former_, nullptr);
  }
}

void Incarnations::tell(const Restart& restart) noexcept {
  try {
    std::function<void(const Restart&)> callback;
    {
      const std::lock_guard lock(mutex_);
      callback = on_restart_;
    }
    if (callback) callback(restart);
  } catch (const std::exception& error) {
    log(LogLevel::error,
        [&] { return fmt::format("calling what Runtime::on_restart was given: {}", error.what()); });
  }
}

Termination Incarnations::terminate(std::chrono::nanoseconds timeout) {
  present()->refuse_if_forked("terminating a runtime");
  ended_.store(true, std::memory_order_release);  // pairs with the loads in gives_way() and replace()
  // A relaunch on its way ends before, or replaces nothing any more.
  const int64_t deadline_ns =
      after(host_now_ns(), std::max<std::chrono::nanoseconds>(timeout, Core::terminate_grace));
  std::unique_lock lock(relaunching_, std::defer_lock);
  const bool alone = lock.try_lock_until(steady_time(deadline_ns));
  Termination report = present()->terminate(timeout);
  if (recorder_) recorder_->end(after(host_now_ns(), timeout));
  if (!alone) report.callback_stuck = true;
  const std::lock_guard counts(mutex_);
  report.books += counted_.books;
  return report;
}

// Present core and former counts are of one moment: a relaunch in between would count a core twice.
Books Incarnations::books() const {
  std::shared_ptr<Core> now = present();
  now->refuse_if_forked("reading the books");
  Books former;
  {
    const std::lock_guard lock(mutex_);
    now = present_;
    former = counted_.books;
  }
  return former += now->books();
}

Stats Incarnations::stats() const {
  std::shared_ptr<Core> now = present();
  now->refuse_if_forked("reading the stats");
  Former former;
  {
    const std::lock_guard lock(mutex_);
    now = present_;
    former = counted_;
  }
  Stats stats = now->stats();
  stats.restarts = former.restarts;
  stats.log_lines += former.log_lines;
  stats.log_lines_dropped += former.log_lines_dropped;
  stats.books += former.books;
  stats.writes = sum(stats.writes, former.writes);
  stats.reads = sum(stats.reads, former.reads);
  for (size_t worker = 0; worker < std::min(stats.workers.size(), former.workers.size()); ++worker) {
    auto& handlers = stats.workers[worker].handlers;
    const auto& more = former.workers[worker];
    for (size_t n = 0; n < std::min(handlers.size(), more.size()); ++n) handlers[n] += more[n];
    auto& actors = stats.workers[worker].actors;
    const auto& gone = former.actors[worker];
    for (size_t n = 0; n < std::min(actors.size(), gone.size()); ++n) actors[n] += gone[n];
  }
  stats.program = program_counts_->read();
  return stats;
}

AddedCounts Incarnations::add_counts(CountSection section, ProgramCounts::Read read) {
  present()->refuse_if_forked("adding counts to the stats");
  return {program_counts_, program_counts_->add(std::move(section), std::move(read))};
}

uint32_t Incarnations::restarts() const {
  present()->refuse_if_forked("reading the number of restarts");
  const std::lock_guard lock(mutex_);
  return counted_.restarts;
}

std::vector<DeadLetter> Incarnations::take_dead_letters() {
  std::vector<DeadLetter> letters;
  const std::shared_ptr<Core> now = present();
  now->refuse_if_forked("taking dead letters");
  {
    const std::lock_guard lock(mutex_);
    letters = std::move(dead_letters_);
    dead_letters_.clear();
  }
  keep_last(letters, now->take_dead_letters());
  return letters;
}

}  // namespace gyre::detail
