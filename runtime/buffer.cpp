#include <fmt/format.h>
#include <gyre/runtime/buffer.hpp>

#include <limits>

namespace gyre::detail {

namespace {
uint64_t bytes_of(MemoryKind kind, uint64_t elements, uint64_t element_bytes) {
  if (elements > std::numeric_limits<uint64_t>::max() / element_bytes) {
    throw Error(fmt::format("allocating a {} buffer of {} elements of {} bytes: there are not as many bytes",
                            name(kind), elements, element_bytes));
  }
  return elements * element_bytes;
}

ForeignMemory foreign(const void* there, uint64_t element_bytes, uint64_t elements,
                      std::shared_ptr<void> owner, int64_t stream) {
  const uint64_t address = reinterpret_cast<uintptr_t>(there);
  const auto refuse = [&](const std::string& why) {
    return Error(
        fmt::format("importing {} elements of {} bytes at {:#x}: {}", elements, element_bytes, address, why));
  };
  if (address == 0) throw refuse("the pointer is null; give the address of device memory");
  if (elements == 0) throw refuse("a buffer has an element at least; import more");
  if (address % element_bytes != 0) {
    throw refuse(
        fmt::format("the address is no multiple of {}; import from an element's address on", element_bytes));
  }
  if (elements > (std::numeric_limits<uint64_t>::max() - address) / element_bytes)
    throw refuse("there are not as many bytes");
  return {address, elements * element_bytes, std::move(owner), stream};
}

}  // namespace

BufferOwner::BufferOwner(std::shared_ptr<Core> core, MemoryKind kind, messages::view::ElementType element,
                         uint64_t element_bytes, uint64_t elements)
    : core_(std::move(core)),
      record_((core_->refuse_if_forked("allocating a buffer"),
               core_->buffers().allocate(kind, element, bytes_of(kind, elements, element_bytes)))) {}

BufferOwner::BufferOwner(std::shared_ptr<Core> core, const void* elements_there,
                         messages::view::ElementType element, uint64_t element_bytes, uint64_t elements,
                         std::shared_ptr<void> owner, BufferAccess access, int64_t stream)
    : core_(std::move(core)),
      record_(
          (core_->refuse_if_forked("importing memory"),
           core_->buffers().import(foreign(elements_there, element_bytes, elements, std::move(owner), stream),
                                   element, access))) {}

std::shared_ptr<ExportedBuffer> ExportedBuffer::make(const std::shared_ptr<Core>& core,
                                                     const MemoryBlock& block) {
  return {new ExportedBuffer(core, block), [](ExportedBuffer* last) {
            std::unique_ptr<ExportedBuffer> mine(last);
            const bool may_wait = mine->mapping_.use_count() != 0;
            if (may_wait && !mine->fork_.forked()) release_later(std::move(mine));
          }};
}

ExportedBuffer::ExportedBuffer(const std::shared_ptr<Core>& core, const MemoryBlock& block) : block_(block) {
  ExportedBlock exported{reinterpret_cast<uintptr_t>(block.host), nullptr, false};
  if (block.host == nullptr) exported = core->buffers().memory().export_block(block);
  elements_ = reinterpret_cast<void*>(exported.address);
  mapping_ = std::move(exported.mapping);
  if (exported.outlives_engine) {
    weak_core_ = core;
  } else {
    core_ = core;
  }
}

ExportedBuffer::~ExportedBuffer() {
  mapping_.reset();
  const std::shared_ptr<Core> core = core_ ? core_ : weak_core_.lock();
  if (withdrawn_ && core && !core->forked()) core->buffers().give_back(block_);
}

BufferOwner& BufferOwner::operator=(BufferOwner&& other) noexcept {
  if (this != &other) {
    free();
    core_ = std::move(other.core_);
    record_ = other.record_;
    exported_ = std::move(other.exported_);
    last_copy_ = std::move(other.last_copy_);
  }
  return *this;
}

void BufferOwner::free() {
  finish_copies();
  if (core_ && !core_->forked()) {
    if (exported_ == nullptr) {
      core_->buffers().free(record_);
    } else if (core_->buffers().withdraw(record_)) {
      exported_->withdrawn();
    }
  }
  exported_.reset();
  last_copy_.reset();
  core_.reset();
}

void BufferOwner::set(messages::BufferHandle::Builder handle, uint64_t elements) const {
  handle.setIndex(record_.index);
  handle.setGeneration(record_.generation);
  handle.setRuntime(core_->buffers().memory().runtime_tag());
  handle.setElement(messages::ElementType(record_.element));
  handle.setLength(elements);
  // Orders the program's writes to the buffer before the message. Pairs with the fence in Context::buffer().
  Memory::fence();
}

void BufferOwner::check_range(const char* doing, uint64_t offset, uint64_t bytes) const {
  if (offset <= record_.bytes && bytes <= record_.bytes - offset) return;
  throw Error(
      fmt::format("{} a buffer: {} bytes from byte {} on, and it has {}; ask for less, or allocate "
                  "more",
                  doing, bytes, offset, record_.bytes));
}

namespace {

void copy_into(Buffers& buffers, const MemoryBlock& block, uint64_t offset, const void* from,
               uint64_t bytes) {
  const int64_t begin_ns = host_now_ns();
  buffers.memory().copy_in(block, offset, from, bytes);
  buffers.note(Transfer::write, bytes, uint64_t(host_now_ns() - begin_ns));
  Memory::fence();  // orders the copy before later messages; pairs with the fence in Context::buffer()
}

void copy_out_of(Buffers& buffers, const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) {
  // Orders replies before the copy. Pairs with the worker's fence before a reply to a message that used
  // buffers (Worker::conclude).
  Memory::fence();
  const int64_t begin_ns = host_now_ns();
  buffers.memory().copy_out(block, offset, to, bytes);
  buffers.note(Transfer::read, bytes, uint64_t(host_now_ns() - begin_ns));
}

}  // namespace

void BufferOwner::check_writing(uint64_t offset, uint64_t bytes) const {
  core_->refuse_if_forked("writing a buffer");
  check_range("writing", offset, bytes);
  if (record_.access == BufferAccess::read_only)
    throw Error("writing a buffer: it is read-only; import its memory with BufferAccess::read_write");
}

void BufferOwner::check_reading(uint64_t offset, uint64_t bytes) const {
  core_->refuse_if_forked("reading a buffer");
  check_range("reading", offset, bytes);
}

void BufferOwner::finish_copies() const {
  if (last_copy_) last_copy_->wait();
}

void BufferOwner::copy_in(uint64_t offset, const void* from, uint64_t bytes) {
  check_writing(offset, bytes);
  if (bytes == 0) return;
  finish_copies();
  copy_into(core_->buffers(), record_.block, offset, from, bytes);
}

void BufferOwner::copy_out(uint64_t offset, void* to, uint64_t bytes) const {
  check_reading(offset, bytes);
  if (bytes == 0) return;
  finish_copies();
  copy_out_of(core_->buffers(), record_.block, offset, to, bytes);
}

// The buffer keeps its core, and free() waits for the last copy: a copy's thread needs no share of either.
Future<void> BufferOwner::begin_copy(Transfer direction, uint64_t bytes, std::function<void()> copy) {
  if (bytes == 0) {
    auto nothing = std::make_shared<CopyState>();
    nothing->complete({});
    return {core_, std::move(nothing)};
  }
  last_copy_ = core_->buffers().copies().add(direction, std::move(copy), last_copy_);
  return {core_, last_copy_};
}

Future<void> BufferOwner::begin_copy_in(uint64_t offset, const void* from, uint64_t bytes) {
  check_writing(offset, bytes);
  return begin_copy(Transfer::write, bytes,
                    [&buffers = core_->buffers(), block = record_.block, offset, from, bytes] {
                      copy_into(buffers, block, offset, from, bytes);
                    });
}

Future<void> BufferOwner::begin_copy_out(uint64_t offset, void* to, uint64_t bytes) {
  check_reading(offset, bytes);
  return begin_copy(Transfer::read, bytes,
                    [&buffers = core_->buffers(), block = record_.block, offset, to, bytes] {
                      copy_out_of(buffers, block, offset, to, bytes);
                    });
}

void* BufferOwner::host(MemoryKind kind) const {
  core_->refuse_if_forked("looking at a buffer");
  if (record_.block.kind != kind) {
    throw Error(fmt::format("looking at a {} buffer in place: {}() is for {} ones; use read() and write()",
                            name(record_.block.kind), kind == MemoryKind::pinned ? "host" : "view",
                            name(kind)));
  }
  Memory::fence();  // as in copy_out()
  return record_.block.host;
}

std::shared_ptr<void> BufferOwner::export_memory() {
  core_->refuse_if_forked("exporting a buffer");
  const MemoryKind kind = record_.block.kind;
  if (kind == MemoryKind::unified || kind == MemoryKind::imported) {
    throw Error(
        fmt::format("exporting a buffer: its memory is {}; {}", name(kind),
                    kind == MemoryKind::unified ? "look at it by view()" : "use what it was imported from"));
  }
  if (exported_ == nullptr) exported_ = ExportedBuffer::make(core_, record_.block);
  Memory::fence();  // as in copy_out()
  return {exported_, exported_->elements()};
}

std::optional<int> BufferOwner::device() const {
  if (record_.block.host != nullptr) return std::nullopt;
  return core_->options().device;
}

Result<void> BufferOwner::wait_for_workers(std::chrono::nanoseconds timeout) const {
  return core_->wait_for_workers(timeout);
}

}  // namespace gyre::detail
