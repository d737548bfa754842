#include <gyre/runtime/core/core.hpp>

#include <algorithm>

namespace gyre::detail {

Core::Core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine)
    : host_(std::move(actors), options, std::move(engine)),
      buffers_(host_.engine->buffer_memory(), host_.bridges),
      accounts_(host_),
      clock_(host_),
      engine_failure_(host_, state_, receiver_),
      receiver_(host_, state_, accounts_, clock_, engine_failure_, watcher_),
      sender_(host_, state_, accounts_, clock_, receiver_),
      workers_(host_, state_, accounts_, clock_, receiver_),
      told_(host_),
      terminator_(host_, state_, accounts_, receiver_, engine_failure_, buffers_),
      poller_(*this),
      watcher_(*this) {
  workers_.launch();
}

// Where a launch fails for lack of memory after the workers started, nobody has terminated it.
Core::~Core() {
  if (!forked() && !state_.terminating()) workers_.abandon();
}

std::shared_ptr<Core> make_core(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine) {
  return {new Core(std::move(actors), options, std::move(engine)), drop_last_share};
}

void Core::refuse_if_forked(const char* doing) const {
  if (forked()) throw Error(std::string(doing) + ": " + Failure{Status::forked}.message(), Status::forked);
}

namespace {
// A message without a body.
class Nothing {
 public:
  Outgoing message() { return {reinterpret_cast<capnp::word*>(place_ + Outgoing::heads_bytes), 0}; }

 private:
  alignas(8) std::byte place_[Outgoing::heads_bytes + sizeof(uint64_t)] = {};
};
}  // namespace

Result<std::vector<std::byte>> Core::read_actors(const Destination& to, const ReadLimits& limits) {
  Nothing nothing;
  const auto call = ask(to, nothing.message(), limits, WhenFull::wait);
  if (!call) return call.error();
  wait(call.value());
  const Failure failure = calls().failure(call.value());
  std::vector<std::byte> body;
  if (failure.status == Status::ok) {
    const auto bytes = calls().body_bytes(call.value());
    body.assign(bytes.begin(), bytes.end());
  }
  calls().abandon(call.value());
  if (failure.status != Status::ok) return failure;
  return body;
}

Result<void> Core::ask_lifecycle(const Destination& to, std::chrono::nanoseconds timeout) {
  Nothing nothing;
  const auto call = ask(to, nothing.message(), AskLimits{timeout, 0}, WhenFull::wait);
  if (!call) return call.error();
  wait(call.value());
  const Failure failure = calls().failure(call.value());
  calls().abandon(call.value());
  if (failure.status != Status::ok) return failure;
  return success();
}

Result<void> Core::set_active(bool active, std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  return workers_.set_active(active, timeout);
}

Result<void> Core::drain(std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  // A callback that drains would wait for itself.
  return workers_.drain(poller_.runs_this_thread() ? nullptr : &told_, timeout);
}

Result<void> Core::wait_for_workers(std::chrono::nanoseconds timeout) {
  if (forked()) return Failure{Status::forked};
  return workers_.wait_for_workers(buffers_, timeout);
}

Termination Core::terminate(std::chrono::nanoseconds timeout) {
  refuse_if_forked("terminating a runtime");
  timeout = std::max<std::chrono::nanoseconds>(timeout, terminate_grace);
  Termination report = terminator_.end_workers(timeout, after(host_now_ns(), timeout));
  report.books.told = told_.accounts();
  if (report.unfinished) return report;
  const int64_t deadline_ns = after(host_now_ns(), timeout);
  watcher_.end(deadline_ns);
  host_.handler_log.take();
  report.callback_stuck = !poller_.end(deadline_ns);
  report.books.told = told_.accounts();
  return report;
}

void Core::watch_engine() {
  if (host_.engine->may_die()) watcher_.start();
}

void Core::do_work_of_threads() {
  receiver_.do_work_of_threads();
  poller_.deliver_on_this_thread();
}

void Core::listen(std::shared_ptr<ToldHandlers> handlers) {
  if (!host_.actors.rights().tells_host) return;
  told_.use(std::move(handlers));
  poller_.listen();
}

Books Core::books() const {
  refuse_if_forked("reading the books");
  Books books = terminator_.books();
  books.told = told_.accounts();
  return books;
}

std::vector<DeadLetter> Core::take_dead_letters() {
  refuse_if_forked("taking dead letters");
  return accounts_.take_dead_letters();
}

std::string Core::failure() const {
  refuse_if_forked("asking why the engine failed");
  return engine_failure_.text();
}

}  // namespace gyre::detail
