#include <fmt/format.h>
#include <kj/exception.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/foreign_memory.hpp>
#include <gyre/runtime/cuda/mapped_memory.hpp>
#include <gyre/runtime/cuda/program_context.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/log.hpp>
#include <gyre/runtime/process/launch_message.hpp>
#include <gyre/runtime/process/mps.hpp>
#include <gyre/runtime/process/process_engine.hpp>
#include <gyre/runtime/system/signals_blocked.hpp>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace gyre::process {

namespace {

using From = control::FromEngine;

struct Request {
  capnp::MallocMessageBuilder message;
  control::ToEngine::Builder to = message.initRoot<control::ToEngine>();
};

// Vulkan's device takes as long to open as the engine process's context: both at once. What fails is said
// when the result is asked for. Not valid: the transport needs none.
std::future<std::shared_ptr<cuda::VulkanDevice>> open_bar(TransportKind transport) {
  if (transport != TransportKind::automatic && transport != TransportKind::bar) return {};
  try {
    const detail::SignalsBlocked blocked;
    return std::async(std::launch::async, cuda::BarMemory::open);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, cuda::BarMemory::open);
  }
}

// The multiprocessors of each device. An engine process of its own: CUDA reads the percentage once.
std::vector<uint32_t> device_multiprocessors(const Options& options) {
  EngineProcess process(options.heartbeat_timeout, 100);
  Request request;
  request.to.setDevices();
  return process.call(request.message, From::DEVICES, [](From::Reader answer, Received&) {
    std::vector<uint32_t> multiprocessors;
    for (const uint32_t each : answer.getDevices()) multiprocessors.push_back(each);
    return multiprocessors;
  });
}

Share share_of(const ActorSet& actors, const Options& options) {
  if (options.multiprocessors == all_multiprocessors || !mps_runs()) return {};
  const std::vector<uint32_t> devices = device_multiprocessors(options);
  if (options.device < 0 || size_t(options.device) >= devices.size()) return {};  // the engine refuses it
  Share share;
  share.total = std::max(devices[size_t(options.device)], 1u);
  share.multiprocessors =
      multiprocessors_for(options, actors.is_grid_scoped() ? options.blocks : options.workers, share.total);
  share.percentage = percentage_of(share.multiprocessors, share.total);
  return share;
}

cuda::DeviceUuid uuid_in(control::Launched::Reader launched) {
  cuda::DeviceUuid uuid{};
  const auto bytes = launched.getDeviceUuid();
  std::copy_n(bytes.begin(), std::min(bytes.size(), uuid.size()), uuid.begin());
  return uuid;
}

}  // namespace

// The process has ended, and what it had of the program's memory.
ProcessBufferMemory::~ProcessBufferMemory() {
  if (fork_.forked()) leak_owners();
}

void ProcessBufferMemory::launched(SharedMemory staging, uint64_t own_bytes, const cuda::DeviceUuid& device) {
  device_ = device;
  staging_ = std::move(staging);
  auto& lanes = *static_cast<StagingBlock*>(staging_.address());
  in_.attach(lanes);
  out_.attach(lanes);
  own_bytes_ = own_bytes;
}

void ProcessBufferMemory::refuse_if_lost() const {
  if (process_.gone()) throw Error(Failure{Status::buffer_lost}.message(), Status::buffer_lost);
}

std::string ProcessBufferMemory::refusal(MemoryKind kind) const {
  if (kind != MemoryKind::unified) return {};
  return "managed memory cannot be shared with the engine's process; use MemoryKind::pinned, or launch with "
         "--isolation in_process";
}

MemoryBlock ProcessBufferMemory::allocate(MemoryKind kind, uint64_t bytes) {
  refuse_if_lost();
  Request request;
  auto block = request.to.initAllocate();
  block.setKind(uint32_t(kind));
  block.setBytes(bytes);
  Descriptor file;
  const uint64_t address =
      process_.call(request.message, From::ALLOCATED, [&](From::Reader answer, Received& received) {
        if (kind == MemoryKind::pinned) file = received.take_descriptor();
        return answer.getAllocated();
      });
  if (kind != MemoryKind::pinned) return {kind, bytes, address, nullptr};
  // Where there is no room to map it, the process keeps it to its end: freeing it would wait for the workers.
  SharedMemory memory(std::move(file), bytes);
  void* const host = memory.address();
  const std::lock_guard lock(mutex_);
  // The block that is there is in use: its mapping must stay.
  if (!blocks_.try_emplace(address, std::move(memory)).second)
    throw process_.condemned(fmt::format("it gave address {:#x} to two blocks", address));
  return {kind, bytes, address, host};
}

std::shared_ptr<const cuda::Driver> ProcessBufferMemory::driver() {
  cuda::Driver::refuse_after_fork();
  const std::lock_guard lock(mutex_);
  if (!driver_) driver_ = std::make_shared<const cuda::Driver>(cuda::Driver::load());
  return driver_;
}

MemoryBlock ProcessBufferMemory::import(ForeignMemory memory) {
  refuse_if_lost();
  const auto driver = this->driver();
  const cuda::ForeignAllocation allocation = cuda::find_allocation(*driver, memory);
  cuda::check_device(memory, allocation, device_);
  const cuda::ExportedAllocation exported = cuda::export_allocation(*driver, memory, allocation);
  cuda::wait_for_stream(*driver, memory, allocation);
  Request request;
  auto to = request.to.initImport();
  to.setBase(allocation.base);
  to.setId(allocation.id);
  to.setAllocationBytes(allocation.bytes);
  to.setOffset(memory.address - allocation.base);
  to.setBytes(memory.bytes);
  if (allocation.ipc)
    to.setIpcHandle({reinterpret_cast<const kj::byte*>(&exported.ipc), sizeof exported.ipc});
  const auto address = [](From::Reader answer, Received&) { return answer.getImported(); };
  const MemoryBlock block{
      MemoryKind::imported, memory.bytes,
      allocation.ipc ? process_.call(request.message, From::IMPORTED, address)
                     : process_.call(request.message, From::IMPORTED, address, {exported.descriptor.get()}),
      nullptr, 0};
  try {
    return keep(block, std::move(memory.owner));
  } catch (...) {
    post_release(block);
    throw;
  }
}

ExportedBlock ProcessBufferMemory::export_block(const MemoryBlock& block) {
  refuse_if_lost();
  const auto driver = this->driver();
  const CUcontext context = cuda::require_program_context(*driver, device_, "exporting a buffer");
  Request request;
  request.to.setExport(block.address);
  Descriptor file;
  uint64_t offset = 0;
  const uint64_t allocated =
      process_.call(request.message, From::EXPORTED, [&](From::Reader answer, Received& received) {
        file = received.take_descriptor();
        offset = answer.getExported().getOffset();
        return answer.getExported().getAllocationBytes();
      });
  if (offset > allocated || block.bytes > allocated - offset) {
    throw process_.condemned(
        fmt::format("it exported {} bytes for {} from byte {} on", allocated, block.bytes, offset));
  }
  const cuda::MaybeCurrent current(*driver, context);
  CUdevice device = 0;
  driver->check(driver->cuCtxGetDevice(&device), "exporting a buffer: entering the program's CUDA context");
  const cuda::MappedMemory mapped =
      cuda::map_descriptor(*driver, file.get(), allocated, device, "a buffer's memory");
  // CUDA does not wait for kernels that use the memory before it unmaps it.
  const auto unmap = [driver, context, mapped, fork = ForkGuard()](void*) {
    if (fork.forked() || !cuda::wait_for_context(*driver, context)) return;
    const cuda::MaybeCurrent current(*driver, context);
    cuda::unmap_memory(*driver, mapped);
  };
  return {mapped.address + offset, std::shared_ptr<void>(nullptr, unmap), true};
}

void ProcessBufferMemory::release(const MemoryBlock& block) noexcept {
  if (fork_.forked()) return;  // it is the parent's
  if (block.kind != MemoryKind::imported) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(block.address);
  }
  // Last: the next block that the process makes may lie at this address.
  post_release(block);
  if (block.kind == MemoryKind::imported) (void)take_owner(block);
}

void ProcessBufferMemory::post_release(const MemoryBlock& block) noexcept {
  Request request;
  auto to = request.to.initRelease();
  to.setKind(uint32_t(block.kind));
  to.setAddress(block.address);
  to.setBytes(block.bytes);
  process_.post(request.message);
}

// The device's address of host memory that lies in a pinned buffer; 0 if it does not.
uint64_t ProcessBufferMemory::pinned_address_of(const void* host, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, memory] : blocks_) {
    const uint64_t offset = reinterpret_cast<uintptr_t>(host) - reinterpret_cast<uintptr_t>(memory.address());
    if (offset < memory.bytes() && bytes <= memory.bytes() - offset) return address + offset;
  }
  return 0;
}

void ProcessBufferMemory::copy_in(const MemoryBlock& block, uint64_t offset, const void* from,
                                  uint64_t bytes) {
  refuse_if_lost();
  if (block.host != nullptr) return threads_->copy(static_cast<char*>(block.host) + offset, from, bytes);
  const uint64_t to = block.address + offset;
  if (const uint64_t pinned = pinned_address_of(from, bytes)) return in_.copy_pinned(to, pinned, bytes);
  in_.copy(to, const_cast<void*>(from), bytes);  // it only reads there
}

void ProcessBufferMemory::copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) {
  refuse_if_lost();
  if (block.host != nullptr) return threads_->copy(to, static_cast<const char*>(block.host) + offset, bytes);
  const uint64_t from = block.address + offset;
  if (const uint64_t pinned = pinned_address_of(to, bytes)) return out_.copy_pinned(from, pinned, bytes);
  out_.copy(from, to, bytes);
}

void ProcessBufferMemory::zero(const MemoryBlock& block, uint64_t bytes) {
  refuse_if_lost();
  if (block.host != nullptr) {
    std::memset(block.host, 0, bytes);
    return;
  }
  Request request;
  auto zeroed = request.to.initZero();
  zeroed.setAddress(block.address);
  zeroed.setBytes(bytes);
  process_.call(request.message, From::DONE);
}

void ProcessBufferMemory::set_entry(uint32_t index, const BufferEntry& entry) {
  // The workers read no entries once the process is gone. What remains is the program's to free.
  if (process_.gone()) return;
  Request request;
  auto to = request.to.initSetEntry();
  to.setIndex(index);
  to.setBytes({reinterpret_cast<const kj::byte*>(&entry), sizeof entry});
  process_.call(request.message, From::DONE);
}

ProcessEngine::ProcessEngine(const ActorSet& actors, const Options& options)
    : share_(share_of(actors, options)),
      process_(options.heartbeat_timeout, share_.percentage),
      buffers_(process_, options.max_buffers) {
  Request request;
  write_launch(request.to.initLaunch(), actors, options, buffers_.runtime_tag());
  auto opened = open_bar(options.transport);
  Received answer = process_.call(request.message, From::LAUNCHED);
  try {
    const auto launched = answer.root<From>().getLaunched();
    device_ = launched.getDevice();
    compile_ms_ = launched.getCompileMs();
    from_cache_ = launched.getFromCache();
    compiled_ahead_ = launched.getCompiledAhead();
    description_ = read_description(as_bytes(launched.getDescription()));
    const RegionLayout layout = options.region_layout(complete(actors).handlers().size());
    // The layout is the program's own: it must not trust that what it maps has room for it.
    if (launched.getRegionBytes() < layout.region_bytes()) {
      throw MalformedMessage(fmt::format("it launched a region of {} bytes, and {} are needed",
                                         launched.getRegionBytes(), layout.region_bytes()));
    }
    if (launched.getStagingBytes() < sizeof(StagingBlock))
      throw MalformedMessage(
          fmt::format("it launched a staging block of {} bytes", launched.getStagingBytes()));
    region_ = SharedMemory(answer.take_descriptor(), launched.getRegionBytes());
    buffers_.launched(SharedMemory(answer.take_descriptor(), launched.getStagingBytes()),
                      launched.getBufferTableBytes(), uuid_in(launched));
    if (opened.valid())
      choose_transport(options.transport, std::move(opened), launched, layout.inbound_bytes_elsewhere());
    memory_.bar = bar_ ? bar_->bytes() : 0;
    memory_.actors = launched.getActorBytes();
    memory_.modules = launched.getModuleBytes();
    memory_.buffer_table = launched.getBufferTableBytes();
    detail::log(LogLevel::info, [&] {
      return fmt::format("the engine process {} locked {} bytes of shared memory for the region in {:.1f} ms",
                         process_.id(), region_.bytes(), launched.getRegisterMs());
    });
    log_share(launched.getMultiprocessors());
  } catch (const kj::Exception& error) {
    throw process_.condemned(MalformedMessage(error).what());
  } catch (const MalformedMessage& error) {
    throw process_.condemned(error.what());
  }
}

// What MPS gave is read back: it rounds, and may have been restarted meanwhile.
void ProcessEngine::log_share(uint32_t multiprocessors) const {
  const auto text = [&] {
    return fmt::format("the engine process {} may use {} multiprocessors", process_.id(), multiprocessors) +
           (share_.percentage == 0 ? ""
                                   : fmt::format(" of {}: asked MPS for {}, {} %", share_.total,
                                                 share_.multiprocessors, share_.percentage));
  };
  // A part so large may be all, rounded up.
  if (share_.percentage == 0 || share_.percentage > 90 || multiprocessors < share_.total) {
    detail::log(LogLevel::info, text);
  } else {
    detail::log(LogLevel::warning,
                [&] { return text() + "; kernels of other processes may wait until the workers end"; });
  }
}

// What BAR needs is not everywhere, and pinned memory is there always. BAR is made here, not by the engine
// process: Vulkan takes 135 ms longer to open in two processes at once (H200, 2026-11-25).
void ProcessEngine::choose_transport(TransportKind asked,
                                     std::future<std::shared_ptr<cuda::VulkanDevice>> opened,
                                     control::Launched::Reader launched, uint64_t bar_bytes) {
  try {
    bar_ = std::make_unique<cuda::BarMemory>(opened.get(), uuid_in(launched), bar_bytes);
    Request request;
    request.to.setMapBar(bar_->bytes());
    const Descriptor exported = bar_->export_memory();
    process_.call(request.message, From::DONE, {exported.get()});
    bar_->test([this](LineStore how) {
      Request request;
      request.to.setBarStored(uint32_t(how));
      process_.call(request.message, From::DONE);
    });
    transport_ = TransportKind::bar;
  } catch (const Error& error) {
    bar_.reset();
    if (asked == TransportKind::bar) {
      throw EngineUnavailable(
          fmt::format("launching with --transport bar: {}; or use --transport pinned", error.what()));
    }
    transport_ = TransportKind::pinned;
    transport_reason_ = error.what();
  }
}

// The mappings go once the process is gone: giving BAR memory up may wait for kernels.
ProcessEngine::~ProcessEngine() {
  process_.end();
  if (bar_ && fork_.forked()) bar_->leak();
}

void ProcessEngine::launch() {
  Request request;
  request.to.setStart(bar_ != nullptr);
  process_.call(request.message, From::DONE);
  launched_ = true;
}

bool ProcessEngine::finished() {
  // Pairs with the store in EngineService: the workers' last stores are seen.
  return !launched_ || process_.gone() || process_.page().finished.load(std::memory_order_acquire) != 0;
}

std::optional<std::string> ProcessEngine::failure() { return launched_ ? process_.failure() : std::nullopt; }

MemoryStats ProcessEngine::memory() const {
  MemoryStats memory = memory_;
  if (process_.gone()) return memory;
  memory.device_total = process_.page().device_total.load(std::memory_order_relaxed);
  memory.device_free = process_.page().device_free.load(std::memory_order_relaxed);
  return memory;
}

uint32_t device_count(const Options& options) { return uint32_t(device_multiprocessors(options).size()); }

std::string device_problems(const ActorSet& actors, const Options& options) {
  EngineProcess process(options.heartbeat_timeout, share_of(actors, options).percentage);
  Request request;
  write_launch(request.to.initJudge(), actors, options, 1);
  return process.call(request.message, From::JUDGED,
                      [](From::Reader answer, Received&) { return std::string(answer.getJudged()); });
}

}  // namespace gyre::process
