#include <fmt/format.h>
#include <gyre/bridge/cuda/pinned.hpp>
#include <gyre/bridge/cuda/unified.hpp>
#include <gyre/device/read/request_reader.hpp>
#include <gyre/runtime/core/deadline.hpp>
#include <gyre/runtime/cuda/ahead.hpp>
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/system/cancellation.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <system_error>

namespace gyre::cuda {

namespace {

void refuse(const Problems& problems, const DeviceLimits& limits) {
  if (!problems.empty()) throw Error("launching on " + limits.name + ":\n" + lines(problems));
}

// The request, unless the device is one that no kernel can be loaded on to find out more.
LaunchRequest checked_request(const ActorSet& actors, const Options& options, const DeviceLimits& limits) {
  if (const std::string problem = grid_problem(actors, options); !problem.empty()) {
    throw BadOptions("launching a grid-scoped actor set: " + problem);
  }
  const LaunchRequest request = on_device(request_of(actors, options), limits);
  if (!can_load_kernels(limits)) {
    refuse(launch_problems(request, limits, host_memory(), nullptr), limits);
  }
  return request;
}

constexpr size_t most_handlers = 256;  // that room is kept for

CompileOptions compile_options(const Options& options) {
  return {options.cache, options.keep_program, options.verbose};
}

// What `make` makes, with threads of the driver's that take none of the program's signals.
template <class Make>
auto without_signals(Make make) {
  const detail::SignalsBlocked blocked;
  return make();
}

static_assert(int(CudaContext::own) == int(ContextKind::own) &&
              int(CudaContext::primary) == int(ContextKind::primary) &&
              int(CudaContext::given) == int(ContextKind::given));

// Begins `work`, on a thread of its own where there can be one; else it is done when its result is asked for.
template <class Work>
auto begin(Work work) {
  try {
    const detail::SignalsBlocked blocked;
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

}  // namespace

std::string grid_problem(const ActorSet& actors, const Options& options) {
  if (!actors.is_grid_scoped()) return {};
  if (actors.most_sent() != 0) {
    return "a handler sends to other actors (gyre::Sending), and the one worker of a grid-scoped set has no "
           "mailbox; launch the set without grid_scoped(), or let its handlers take gyre::Context";
  }
  if (options.workers == 1) return {};
  return fmt::format(
      "--workers {}: a grid-scoped actor set is one worker, of all blocks; --blocks says how many",
      options.workers);
}

uint32_t message_bytes(const RingShape& shape, uint32_t workers, bool is_warp,
                       const std::vector<ActorDescription>& actors) {
  const bool side_by_side =
      std::any_of(actors.begin(), actors.end(), [](const auto& actor) { return actor.has_side_by_side(); });
  const bool mail_side_by_side =
      std::any_of(actors.begin(), actors.end(), [](const auto& actor) { return actor.side_by_side != 0; });
  uint32_t most_gathered = 0, most_sent = 0, reply_handlers = 0;
  for (const ActorDescription& actor : actors) {
    most_gathered = std::max<uint32_t>(most_gathered, actor.most_in_batch);
    most_sent = std::max<uint32_t>(most_sent, actor.most_sent);
    reply_handlers += actor.reply_handlers;
  }
  const StagingLayout staging =
      StagingLayout::of(shape, workers, uint32_t(actors.size()), most_sent, is_warp && mail_side_by_side,
                        rights_of(actors), reply_handlers);
  return (MessageMemory(shape, is_warp, side_by_side, most_gathered).words() + staging.words()) *
         uint32_t(sizeof(uint32_t));
}

uint32_t shared_scratch_bytes(bool is_warp, const std::vector<ActorDescription>& actors) {
  SharedScratch scratch;
  for (const ActorDescription& actor : actors) {
    scratch.make_room(actor.shared_scratch_bytes, is_warp && actor.has_side_by_side());
  }
  return scratch.bytes();
}

LaunchRequest request_of(const ActorSet& actors, const Options& options) {
  const RegionLayout layout = options.region_layout(actors.handlers().size());
  LaunchRequest request;
  request.block = options.block;
  request.region_bytes = layout.region_bytes();
  // More than 64 bits count is more than any device has.
  if (__builtin_mul_overflow(actors.actor_bytes(options.actors_per_worker), options.workers,
                             &request.device_bytes) ||
      __builtin_add_overflow(
          request.device_bytes,
          sizeof(HandlerCounts) * layout.counts_a_worker() * options.workers + actors.mail_bytes(options),
          &request.device_bytes)) {
    request.device_bytes = ~uint64_t(0);
  }
  const bool is_warp = !actors.is_grid_scoped() && options.block == 32;
  const uint32_t messages_in_hand =
      message_bytes(layout.shape, layout.workers, is_warp, actors.description());
  request.dynamic_shared_bytes = shared_scratch_bytes(is_warp, actors.description());
  if (actors.is_grid_scoped()) {
    request.grid = options.blocks;
    request.block_a_multiprocessor = options.blocks == 0;
    if (__builtin_add_overflow(request.device_bytes, messages_in_hand, &request.device_bytes)) {
      request.device_bytes = ~uint64_t(0);
    }
  } else {
    request.grid = options.workers;
    request.dynamic_shared_bytes += messages_in_hand;
  }
  return request;
}

// What takes long and needs no context: done by other threads while this one makes the context, which takes
// longer than each of them. Refers to the actors and options of the launch.
struct CudaEngine::Ahead {
  std::future<std::optional<CompiledKernel>> compiled;
  std::future<OwnPages> pages;                  // of the region, or of most of it; not valid: none
  std::future<SharedMemory> shared_pages;       // in their place, where another process is served
  std::future<std::unique_ptr<BarMemory>> bar;  // not valid: it is not asked for
};

CudaEngine::Ahead CudaEngine::begin_ahead(const ActorSet& actors, const Options& options) const {
  Ahead ahead;
  const int architecture = 10 * limits_.compute_major + limits_.compute_minor;
  const uint32_t block = with_possible_block(request_, limits_).block;
  ahead.compiled = begin([&actors, &options, architecture, block] {
    return find_compiled(actors, architecture, block, compile_options(options));
  });
  // What will be refused is not prepared: there may be less memory.
  const bool refused = !launch_problems(request_, limits_, host_memory(), nullptr).empty();
  if (options.transport == TransportKind::unified || refused) return ahead;
  // How many handlers there are may be known once the actors are loaded.
  const uint64_t bytes = request_.region_bytes;
  const uint64_t most =
      std::min<uint64_t>(options.region_layout(most_handlers).region_bytes(), OwnPages::most_bytes);
  const uint64_t room = std::max(bytes, most);
  if (served_runtime_ != 0) {
    ahead.shared_pages = begin([bytes, room] { return SharedMemory("gyre-region", room, bytes); });
  } else {
    ahead.pages = begin([bytes, room] { return OwnPages(bytes, room); });
  }
  if (options.transport != TransportKind::pinned) {
    const uint64_t inbound = options.region_layout(0).inbound_bytes_elsewhere();
    try {
      const DeviceUuid uuid = uuid_of(driver_, find_device(driver_, options.device));
      ahead.bar = begin([uuid, inbound] { return std::make_unique<BarMemory>(uuid, inbound); });
    } catch (const Error&) {
      ahead.bar = std::async(std::launch::deferred,
                             [error = std::current_exception()]() -> std::unique_ptr<BarMemory> {
                               std::rethrow_exception(error);
                             });
    }
  }
  return ahead;
}

CudaEngine::CudaEngine(const ActorSet& actors, const Options& options, uint32_t served_runtime)
    : verbose_(options.verbose),
      served_runtime_(served_runtime),
      driver_(without_signals([] { return Driver::load(); })),
      lease_(options.device),
      limits_(read_limits(driver_, options.device)),
      request_(checked_request(actors, options, limits_)),
      ahead_(std::make_unique<Ahead>(begin_ahead(actors, options))),
      context_(without_signals([&] {
        return Context(driver_, options.device, lease_, ContextKind(options.context),
                       static_cast<CUcontext>(options.cuda_context));
      })),
      kernel_name_(actors.kernel()) {
  const LaunchRequest possible = with_possible_block(request_, limits_);
  const auto began = std::chrono::steady_clock::now();
  std::optional<CompiledKernel> found = ahead_->compiled.get();
  const int architecture = 10 * limits_.compute_major + limits_.compute_minor;
  const CompiledKernel kernel =
      found ? *std::move(found)
            : compile_not_found(actors, architecture, possible.block, compile_options(options));
  compile_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  compiled_from_cache_ = kernel.from_cache;
  compiled_ahead_ = kernel.ahead;
  module_bytes_ = kernel.cubin.size();

  kernel_ = std::make_unique<LoadedKernel>(context_, kernel);
  description_ = kernel_->read_description(kernel.lowered_description);
  const ActorSet described = complete(actors);
  layout_ = options.region_layout(described.handlers().size());
  request_ = checked_request(described, options, limits_);
  kernel_limits_ = kernel_->limits(with_possible_block(request_, limits_), limits_);
  lease_.hold(residency_of(request_, kernel_limits_));
  refuse(launch_problems(request_, limits_, host_memory(), &kernel_limits_, lease_.others()), limits_);
  choose_transport(options.transport);
  region_ = make_region();
  ahead_.reset();
  const Context::Current current(context_);
  buffer_memory_ = std::make_unique<CudaBufferMemory>(context_, options.max_buffers, served_runtime_);
  buffer_memory_->describe(memory_);
  memory_.actor_bytes = described.actor_bytes(options.actors_per_worker);
  zeroed_bytes_ = request_.device_bytes - described.mail_bytes_not_zeroed(options);
  memory_.actors_per_worker = options.actors_per_worker;
  try {
    driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating the kernel's stream");
    allocate_actors();
  } catch (...) {
    release();
    throw;
  }
}

std::unique_ptr<RegionMemory> CudaEngine::make_region() {
  if (transport_ == TransportKind::unified) {
    return std::make_unique<UnifiedRegion>(context_, layout_.region_bytes(), layout_.rings_bytes());
  }
  if (served_runtime_ != 0) {
    SharedMemory memory;
    if (ahead_->shared_pages.valid()) memory = ahead_->shared_pages.get();
    const uint64_t bytes = layout_.region_bytes();
    if (memory.bytes() < bytes) memory = SharedMemory("gyre-region", bytes, bytes);
    const int64_t began_ns = detail::host_now_ns();
    auto region = std::make_unique<PinnedRegion>(context_, std::move(memory));
    register_ms_ = double(detail::host_now_ns() - began_ns) * 1e-6;
    region_descriptor_ = region->descriptor();
    return region;
  }
  OwnPages pages;
  if (ahead_->pages.valid()) pages = ahead_->pages.get();
  return std::make_unique<PinnedRegion>(context_, layout_.region_bytes(), layout_.rings_bytes(),
                                        std::move(pages));
}

// BAR is the fastest; what it needs is not everywhere, and tested here.
void CudaEngine::choose_transport(TransportKind asked) {
  transport_ = asked;
  if (asked != TransportKind::automatic && asked != TransportKind::bar) return;
  try {
    bar_memory_ = ahead_->bar.get();
    bar_ = std::make_unique<BarMapping>(context_, bar_memory_->export_memory(), bar_memory_->bytes());
    bar_memory_->test([this](LineStore how) { bar_->expect_test_lines(how); });
    transport_ = TransportKind::bar;
  } catch (const Error& error) {
    bar_.reset();
    bar_memory_.reset();
    if (asked == TransportKind::bar) {
      throw EngineUnavailable(
          fmt::format("launching with --transport bar: {}; or use --transport pinned", error.what()));
    }
    transport_ = TransportKind::pinned;
    transport_reason_ = error.what();
  }
}

// The tables of all workers' actors, their handlers' counts, and a grid-scoped worker's scratch: zeroed
// before the kernel, on its stream.
void CudaEngine::allocate_actors() {
  driver_.check(
      driver_.cuMemAlloc(&actor_memory_, request_.device_bytes),
      fmt::format("allocating {} bytes of device memory for {} actors of each type on each of {} workers "
                  "(--actors-per-worker)",
                  request_.device_bytes, memory_.actors_per_worker, layout_.workers));
  driver_.check(driver_.cuMemsetD8Async(actor_memory_, 0, zeroed_bytes_, stream_),
                "zeroing the actors' memory");
  memory_.actors = reinterpret_cast<uint8_t*>(actor_memory_);
  uint8_t* const counts = memory_.actors + memory_.actor_bytes * layout_.workers;  // 256-aligned
  memory_.counts = reinterpret_cast<HandlerCounts*>(counts);
  memory_.counts_per_worker = layout_.counts_a_worker();
  memory_.scratch = counts + sizeof(HandlerCounts) * memory_.counts_per_worker * layout_.workers;
}

// In a forked child all of it is the parent's; and unloading would wait for a kernel that does not end.
CudaEngine::~CudaEngine() {
  if (!leaked_ && (fork_.forked() || !finished())) leak();
  if (!leaked_) release();
}

// Where the context is dead the calls fail, and all went with it.
void CudaEngine::release() noexcept {
  const Context::Current current(context_, std::nothrow);
  if (stream_ != nullptr) {
    driver_.check_or_log(driver_.cuStreamDestroy(stream_), "ending the kernel's stream (cuStreamDestroy)");
  }
  if (actor_memory_ != 0) {
    driver_.check_or_log(driver_.cuMemFree(actor_memory_), "freeing the actors' memory (cuMemFree)");
  }
}

void CudaEngine::launch() {
  const Context::Current current(context_);
  arguments_.push_pointer("region", region_->device_address(), layout_.region_bytes());
  if (bar_) {  // memory of Vulkan's, which the driver need not know as an allocation: BarMemory::test() has
               // tried it
    arguments_.push(
        "inbound", bar_->device_address(),
        fmt::format("{:#x}, {} bytes", bar_->device_address(), layout_.inbound_bytes_elsewhere()));
  } else {
    arguments_.push_pointer("inbound", region_->device_address() + layout_.inbound(),
                            layout_.inbound_bytes());
  }
  arguments_.push("layout", layout_,
                  fmt::format("{} workers, {} slots of {} bytes, arena of {} bytes", layout_.workers,
                              layout_.shape.slots, layout_.shape.slot_bytes, layout_.arena_bytes));
  arguments_.push("memory", memory_);
  arguments_.refer_to("memory.actors", actor_memory_, request_.device_bytes);
  arguments_.check(driver_, kernel_->function(), kernel_name_);
  if (verbose_ || log_level() <= LogLevel::debug) log_launch();
  // Made first: whatever comes after the launch must not fail for lack of memory, or nobody would know of it.
  const std::string doing =
      fmt::format("launching the kernel on {} blocks of {} threads", request_.grid, request_.block);
  const CUresult result =
      driver_.cuLaunchCooperativeKernel(kernel_->function(), request_.grid, 1, 1, request_.block, 1, 1,
                                        request_.dynamic_shared_bytes, stream_, arguments_.addresses());
  launched_ = result == CUDA_SUCCESS;
  driver_.check(result, doing);
}

void CudaEngine::log_launch() const {
  const auto log = [](const std::string& line) { detail::log_line(LogLevel::info, line); };
  log(fmt::format("{}, compute capability {}.{}, {} multiprocessors", limits_.name, limits_.compute_major,
                  limits_.compute_minor, limits_.multiprocessors));
  log(fmt::format("transport {}{}", name(transport_),
                  transport_reason_.empty() ? "" : "; bar: no, " + transport_reason_));
  log(fmt::format("kernel {}, {} in {:.1f} ms", kernel_name_,
                  how_compiled({compile_ms_, 0, compiled_from_cache_, compiled_ahead_}), compile_ms_));
  log(fmt::format("grid {} blocks, block {} threads, shared memory {} bytes a block dynamic and {} static",
                  request_.grid, request_.block, request_.dynamic_shared_bytes,
                  kernel_limits_.static_shared_bytes));
  log(
      fmt::format("{} registers and {} bytes of local memory a thread; {} blocks a multiprocessor can be "
                  "resident, {} in all",
                  kernel_limits_.registers, kernel_limits_.local_bytes,
                  kernel_limits_.blocks_a_multiprocessor, resident_blocks(limits_, kernel_limits_)));
  for (const std::string& argument : arguments_.describe()) log("argument " + argument);
}

// A device fault repeats itself in every call; an error that does not was the call's own.
CUresult CudaEngine::query() const noexcept {
  const detail::CancellationDeferred deferred;  // threads that wait come here
  CUresult result = CUDA_SUCCESS;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Context::Current current(context_, std::nothrow);
    result = current.result() == CUDA_SUCCESS ? driver_.cuStreamQuery(stream_) : current.result();
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) break;
  }
  return result;
}

// An error that leaves the context alive says nothing about the kernel: it may still use its memory.
bool CudaEngine::finished() {
  if (!launched_) return true;
  const CUresult result = query();
  if (result == CUDA_SUCCESS) lease_.hold({});  // its blocks are free for other launches
  return result == CUDA_SUCCESS || ends_context(result);
}

std::optional<std::string> CudaEngine::failure() {
  if (!launched_) return std::nullopt;
  const CUresult result = query();
  if (result == CUDA_ERROR_NOT_READY) return std::nullopt;
  if (result != CUDA_SUCCESS) return "running the workers: " + driver_.explain(result);
  for (uint32_t worker = 0; worker < layout_.workers; ++worker) {
    // Pairs with the store in Worker::finish().
    if (Memory::load_acquire(Bridge::of(region_->host_address(), layout_, worker).worker_line->stopped) ==
        0) {
      return "running the workers: the kernel ended by itself";
    }
  }
  return std::nullopt;  // all workers stopped on command
}

MemoryStats CudaEngine::memory() const {
  constexpr int64_t interval_ns = 100'000'000;
  if (const std::unique_lock lock(device_memory_mutex_, std::try_to_lock); lock) {
    const int64_t now_ns = detail::host_now_ns();
    if (device_memory_read_ns_ == 0 || now_ns - device_memory_read_ns_ >= interval_ns) {
      device_memory_read_ns_ = now_ns;
      const Context::Current current(context_, std::nothrow);
      // Fails in a dead context: the sizes are unknown then.
      size_t free = 0, total = 0;
      if (current.result() != CUDA_SUCCESS || driver_.cuMemGetInfo(&free, &total) != CUDA_SUCCESS) {
        free = total = 0;
      }
      // Numbers alone: relaxed, with no partner.
      device_free_.store(free, std::memory_order_relaxed);
      device_total_.store(total, std::memory_order_relaxed);
    }
  }
  MemoryStats memory;
  memory.bar = bar_ ? bar_->bytes() : 0;
  memory.actors = request_.device_bytes;
  memory.modules = module_bytes_;
  memory.buffer_table = buffer_memory_->own_bytes();
  memory.device_total = device_total_.load(std::memory_order_relaxed);
  memory.device_free = device_free_.load(std::memory_order_relaxed);
  return memory;
}

void CudaEngine::leak() {
  leaked_ = true;
  if (region_) region_->leak();
  if (bar_) bar_->leak();
  if (bar_memory_) bar_memory_->leak();
  if (buffer_memory_) buffer_memory_->leak();
  if (kernel_) kernel_->leak();
  context_.leak();
  lease_.keep();
}

}  // namespace gyre::cuda
