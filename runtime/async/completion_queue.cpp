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

// The content of a Continuation that a queue holds.
struct Item {
  uint64_t tag;
  std::unique_ptr<Failure>
      refusal;  // null if the ask was accepted; otherwise the Continuation is on the heap
};

}  // namespace

// Shared by the queue and the asks that it watches.
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
    // Nothing is there: clear the descriptor, then signalled_, then look again. A thread that adds between
    // the first two steps finds signalled_ set and writes nothing; the second take_item() finds its item.
    const detail::CancellationDeferred deferred;
    uint64_t count = 0;
    while (read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
    }
    signalled_.exchange(false, std::memory_order_acq_rel);  // pairs with the exchange in signal()
    taken = take_item();
    if (taken) signal();
    return taken;
  }

 private:
  void signal() noexcept {
    // Pairs with the exchange in take(): whoever sees it false finds the item added before it was set.
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
    if (!item.refusal) return Completion{item.tag, Future<Reply<capnp::AnyPointer>>(std::move(call))};
    delete &continuation;
    return Completion{item.tag, Future<Reply<capnp::AnyPointer>>(*item.refusal)};
  }

  const ForkGuard fork_;
  const int fd_;
  detail::CompletionList arrived_;
  std::atomic<bool> signalled_{false};  // fd_ is readable, or about to be
  Deliverable* oldest_ = nullptr;       // the oldest item taken from arrived_ and not yet handed out
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
    add_refusal(Failure{Status::forked}, tag);
    call = CallHandle();
    return;
  }
  detail::when_done(call, [state = state_, tag](CallHandle done) {
    // The call's own continuation was delivered, and is free to hold the item until the call is released.
    Continuation& continuation = done.core().poller().continuation_of(done.call());
    continuation.put(std::move(done), Item{tag, nullptr});
    state->add(continuation);
  });
}

void CompletionQueue::add_refusal(const Failure& refusal, uint64_t tag) {
  if (state_->forked()) return;
  auto item = std::make_unique<Failure>(refusal);
  auto continuation = std::make_unique<Continuation>();
  continuation->put(CallHandle(), Item{tag, std::move(item)});
  state_->add(*continuation.release());
}

}  // namespace gyre
