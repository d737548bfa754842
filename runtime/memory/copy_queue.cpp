#include <fmt/format.h>
#include <pthread.h>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/memory/copy_queue.hpp>
#include <gyre/runtime/system/futex.hpp>
#include <gyre/runtime/system/leave_thread.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <climits>
#include <system_error>

namespace gyre::detail {

struct CopyState::Called : Deliverable {
  Called(std::function<void(Result<void>)> called, Result<void> with)
      : function(std::move(called)), outcome(std::move(with)) {
    deliver = [](Deliverable& ready) {
      const std::unique_ptr<Called> mine(static_cast<Called*>(&ready));
      mine->function(std::move(mine->outcome));
    };
  }
  std::function<void(Result<void>)> function;
  Result<void> outcome;
};

bool CopyState::wait_until(int64_t until_ns) const noexcept {
  while (!done() && host_now_ns() < until_ns) {
    futex_wait(whole(done_), 0, until_ns);
  }
  return done();
}

Result<void> CopyState::outcome() const {
  if (done_.load(std::memory_order_acquire) == 0) return Failure{Status::forked};
  if (failure_.status != Status::ok) return failure_;
  return success();
}

void CopyState::complete(Failure failure) noexcept {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  if (called_ != nullptr) {
    if (failure_.status != Status::ok) called_->outcome = failure_;
    core_->poller().deliver(*std::exchange(called_, nullptr));
  }
  // Last: the buffer, and with it the core, may go then.
  done_.store(1, std::memory_order_release);
  futex_wake(whole(done_), INT_MAX);
}

bool CopyState::when_done(Core& core, std::function<void(Result<void>)> function) {
  auto called = std::make_unique<Called>(std::move(function), success());
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_function_, true)) return false;
  }
  bool live = false;
  try {
    live = core.poller().expect();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    has_function_ = false;
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    if (live && done_.load(std::memory_order_relaxed) == 0) {
      core_ = &core;
      called_ = called.release();
      return true;
    }
  }
  wait();
  called->outcome = outcome();
  if (live) {
    core.poller().deliver(*called.release());
  } else {
    called->function(std::move(called->outcome));
  }
  return true;
}

CopyQueue::~CopyQueue() {
  for (Line& line : lines_) {
    if (!line.thread.joinable()) continue;
    if (!fork_.forked()) {
      const std::lock_guard lock(line.mutex);
      line.ending = true;
      line.more.notify_all();
    }
    leave_thread(line.thread, fork_.forked());
  }
}

std::shared_ptr<CopyState> CopyQueue::add(Transfer direction, std::function<void()> copy,
                                          std::shared_ptr<CopyState> before) {
  Line& line = lines_[size_t(direction)];
  auto state = std::make_shared<CopyState>();
  const std::lock_guard lock(line.mutex);
  if (!line.thread.joinable()) {
    try {
      const SignalsBlocked blocked;
      line.thread = std::thread([&line] { run(line); });
    } catch (const std::system_error& error) {
      throw Error(
          fmt::format("starting the thread that copies buffers: {}; end other threads or raise their limit "
                      "(ulimit -u), or use Buffer::write() and read()",
                      error.what()));
    }
    pthread_setname_np(line.thread.native_handle(), "gyre-copies");
  }
  line.jobs.push_back({std::move(copy), std::move(before), state});
  line.more.notify_one();
  return state;
}

void CopyQueue::run(Line& line) noexcept {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(line.mutex);
      line.more.wait(lock, [&] { return line.ending || !line.jobs.empty(); });
      if (line.jobs.empty()) return;
      job = std::move(line.jobs.front());
      line.jobs.pop_front();
    }
    // It was added before: whatever it waits for was added earlier still.
    if (job.before) job.before->wait();
    Failure failure;
    try {
      job.copy();
    } catch (const Error& error) {
      failure = Failure{error.status() == Status::buffer_lost ? Status::buffer_lost : Status::engine_failed};
      // The status alone says all that there is to a lost buffer.
      if (failure.status == Status::engine_failed)
        log(LogLevel::warning, [&] { return std::string(error.what()); });
    } catch (const std::exception& error) {
      failure = Failure{Status::engine_failed};
    }
    job.copy = {};
    job.state->complete(failure);
  }
}

}  // namespace gyre::detail
