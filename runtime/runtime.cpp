#include <fmt/format.h>
#include <unistd.h>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/runtime.hpp>
#include <gyre/runtime/system/cancellation.hpp>

namespace gyre {

namespace detail {
namespace {
void log_launch(const Core& core) {
  const Timings& timings = core.timings();
  log(LogLevel::info, [&] {
    const Stats stats = core.stats();
    return fmt::format("launched on {}, transport {}: actors {} in {:.1f} ms, the rest took {:.1f} ms",
                       stats.device, name(stats.transport), how_compiled(timings), timings.compile_ms,
                       timings.launch_ms);
  });
}

// A launch found no memory. Names what it asks for.
[[noreturn]] void refuse_for_memory(const ActorSet& actors, const Options& options) {
  const RegionLayout layout = options.region_layout(actors.handlers().size());
  throw BadOptions(fmt::format(
      "launching a runtime: there is not enough memory for it; --workers {} --slots {} --slot-bytes {} "
      "--arena-bytes {} make a region of {} bytes, --actors-per-worker {} makes tables of {} bytes for each "
      "worker, and this machine has {} bytes of memory; ask for less",
      options.workers, options.slots, options.slot_bytes, options.arena_bytes, layout.region_bytes(),
      options.actors_per_worker, actors.actor_bytes(options.actors_per_worker),
      uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE))));
}
}  // namespace
}  // namespace detail

Runtime Runtime::launch(ActorSet actors, const Options& options) {
  const detail::CancellationDeferred deferred;  // a launch that fails joins threads where nothing may throw
  const int64_t begin_ns = detail::host_now_ns();
  if (const std::string problems = launch_problems(actors, options); !problems.empty()) {
    throw BadOptions("launching a runtime: these options are wrong:\n" + problems);
  }
  if (!__builtin_cpu_supports("avx")) {
    throw EngineUnavailable(
        "launching a runtime: this processor has no AVX, and without it no promise that a 16-byte store is "
        "one store; "
        "use an x86-64 processor with AVX (2011 and later)");
  }
  Timings timings;
  std::shared_ptr<detail::Core> core;
  std::shared_ptr<detail::Recorder> recorder;
  try {
    if (!options.record.empty()) recorder = std::make_shared<detail::Recorder>(options.record);
    std::unique_ptr<Engine> engine = make_engine(actors, options);
    timings = detail::timings_of(*engine);
    core = detail::make_core(actors, options, std::move(engine));
  } catch (const std::bad_alloc&) {
    detail::refuse_for_memory(actors, options);
  }
  timings.launch_ms = double(detail::host_now_ns() - begin_ns) * 1e-6 - timings.compile_ms;
  core->set_timings(timings);
  detail::log_launch(*core);
  detail::Core& launched = *core;
  // From here on it is ended, whatever else fails.
  Runtime runtime(std::make_shared<detail::Incarnations>(std::move(core), nullptr, recorder));
  if (recorder) {
    recorder->begin(launched.actors(), options, launched.engine().device_name());
    launched.record(std::move(recorder));
  }
  runtime.incarnations_->allow_restarts();
  runtime.core()->watch_engine();
  runtime.incarnations_->listen();
  if (options.publish_stats) {
    // Longer than a handler takes, and short enough for the stats to be written in time.
    static constexpr std::chrono::milliseconds listing_timeout{500};
    const auto list = [client = runtime.client()](std::string_view type, const ActorCursor& from,
                                                  size_t most) {
      return client.list_actors(type, from, most, listing_timeout);
    };
    runtime.published_ = detail::StatsPublisher::start(runtime.stats_reader(), options.stats_interval, list);
  }
  return runtime;
}

Runtime::Runtime(Runtime&& other) noexcept = default;

Runtime& Runtime::operator=(Runtime&& other) noexcept {
  if (this != &other) {
    end();
    incarnations_ = std::move(other.incarnations_);
    published_ = std::move(other.published_);
  }
  return *this;
}

Runtime::~Runtime() { end(); }

// In a forked child there is nothing to end: the workers are the parent's.
void Runtime::end() noexcept {
  if (incarnations_ && !core()->forked()) terminate();
}

const std::shared_ptr<detail::Incarnations>& Runtime::incarnations() const {
  if (!incarnations_) throw Error("using a runtime that was moved from: use the one that it was moved to");
  return incarnations_;
}

Result<void> Runtime::drain(std::chrono::nanoseconds timeout) { return core()->drain(timeout); }

Termination Runtime::terminate(std::chrono::nanoseconds timeout) {
  const detail::CancellationDeferred deferred;
  return incarnations()->terminate(timeout);
}

}  // namespace gyre
