#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/memory/buffer_memory.hpp>

#include <atomic>
#include <random>

namespace gyre {

std::string_view name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "device";
    case MemoryKind::pinned:
      return "pinned";
    case MemoryKind::unified:
      return "unified";
    case MemoryKind::imported:
      return "imported";
  }
  return "?";
}

namespace {
// Begins anywhere, so that another process's handles are most likely foreign too. No static object of a
// function: a child of fork() may find the lock of its first use held.
std::atomic<uint32_t> next_tag{std::random_device{}()};
uint32_t next_runtime_tag() {
  uint32_t tag = 0;
  while (tag == 0) tag = next_tag.fetch_add(1, std::memory_order_relaxed);
  return tag;
}
}  // namespace

BufferMemory::BufferMemory(uint32_t entries, uint32_t runtime_tag)
    : entries_(entries), runtime_tag_(runtime_tag != 0 ? runtime_tag : next_runtime_tag()) {}

MemoryBlock BufferMemory::import(ForeignMemory memory) {
  throw Error(fmt::format("importing {} bytes at {:#x}: {}", memory.bytes, memory.address,
                          refusal(MemoryKind::imported)));
}

ExportedBlock BufferMemory::export_block(const MemoryBlock& block) {
  throw Error(fmt::format("exporting a {} buffer of {} bytes: this engine has no device memory",
                          name(block.kind), block.bytes));
}

MemoryBlock BufferMemory::keep(MemoryBlock block, std::shared_ptr<void> owner) {
  const std::lock_guard lock(owners_mutex_);
  block.import = ++imports_;
  owners_->emplace(block.import, std::move(owner));
  return block;
}

std::shared_ptr<void> BufferMemory::take_owner(const MemoryBlock& block) noexcept {
  const std::lock_guard lock(owners_mutex_);
  const auto node = owners_->extract(block.import);
  return node.empty() ? nullptr : std::move(node.mapped());
}

void BufferMemory::leak_owners() noexcept {
  if (!owners_->empty()) (void)owners_.release();
}

void BufferMemory::describe(EngineMemory& memory) const {
  memory.buffers = table();
  memory.buffer_entries = entries_;
  memory.runtime_tag = runtime_tag_;
}

}  // namespace gyre
