#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/async/completion_queue.hpp>
#include <gyre/runtime/system/cancellation.hpp>

#include <cerrno>
#include <system_error>

namespace gyre {

using detail::CallHandle;
using detail::Continuation;
using detail::Deliverable;

namespace {

// What lies in a Continuation that a queue holds.
struct Item {
  uint64_t tag;
  std::unique_ptr<Failure> refused;  // of such an ask: its Continuation is on the heap
};

}  // namespace

// Shared by the queue and what is under way to it.
class CompletionQueue::State {
 public:
  State() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (fd_ < 0) {
      throw Error(
          fmt::format("making a completion queue: eventfd: {}; close other descriptors or raise their limit "
                      "(ulimit -n)",
                      std::generic_category().message(errno)));
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const detail::CancellationDeferred deferred;
    while (take_item()) {
    }
    close(fd_);
  }

  int fd() const { return fd_; }
  bool forked() const { return fork_.forked(); }

  void add(Continuation& item) noexcept {
    arrived_.push(item);
    signal();
  }

  std::optional<Completion> take() {
    if (forked()) return std::nullopt;
    std::optional<Completion> taken = take_item();
    if (taken) return taken;
    // Nothing is there: first the descriptor is cleared, then the mark that it is set. Who adds between the
    // two finds the mark set and writes nothing, but is found by the second look.
    const detail::CancellationDeferred deferred;
    uint64_t count = 0;
    while (read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
    }
    signalled_.exchange(false, std::memory_order_acq_rel);
    taken = take_item();
    if (taken) signal();
    return taken;
  }

 private:
  void signal() noexcept {
    if (signalled_.exchange(true, std::memory_order_acq_rel)) return;
    const detail::CancellationDeferred deferred;
    const uint64_t one = 1;
    while (write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  std::optional<Completion> take_item() {
    if (oldest_ == nullptr) oldest_ = arrived_.take_all();
    if (oldest_ == nullptr) return std::nullopt;
    auto& continuation = static_cast<Continuation&>(*std::exchange(oldest_, oldest_->next));
    auto [call, item] = continuation.take<Item>();
    if (!item.refused) return Completion{item.tag, Future<Reply<capnp::AnyPointer>>(std::move(call))};
    delete &continuation;
    return Completion{item.tag, Future<Reply<capnp::AnyPointer>>(*item.refused)};
  }

  const ForkGuard fork_;
  const int fd_;
  detail::CompletionList arrived_;
  std::atomic<bool> signalled_{false};  // fd_ is readable, or about to be
  Deliverable* oldest_ = nullptr;       // of those that the taker has
};

CompletionQueue::CompletionQueue() : state_(std::make_shared<State>()) {}
CompletionQueue::CompletionQueue(CompletionQueue&&) noexcept = default;
CompletionQueue& CompletionQueue::operator=(CompletionQueue&&) noexcept = default;
CompletionQueue::~CompletionQueue() = default;

int CompletionQueue::fd() const { return state_->fd(); }

std::optional<Completion> CompletionQueue::take() { return state_->take(); }

void CompletionQueue::watch_call(CallHandle& call, uint64_t tag) {
  if (state_->forked()) {
    call = CallHandle();
    return;
  }
  if (call.core().forked()) {  // a parent's call, and the child's queue
    add_refused(Failure{Status::forked}, tag);
    call = CallHandle();
    return;
  }
  detail::when_done(call, [state = state_, tag](CallHandle done) {
    // The call's own: it has been delivered, and lies there until the call is given back.
    Continuation& continuation = done.core().poller().continuation_of(done.call());
    continuation.put(std::move(done), Item{tag, nullptr});
    state->add(continuation);
  });
}

void CompletionQueue::add_refused(const Failure& refused, uint64_t tag) {
  if (state_->forked()) return;
  auto item = std::make_unique<Failure>(refused);
  auto continuation = std::make_unique<Continuation>();
  continuation->put(CallHandle(), Item{tag, std::move(item)});
  state_->add(*continuation.release());
}

}  // namespace gyre
