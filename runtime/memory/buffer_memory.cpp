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

void BufferMemory::describe(EngineMemory& memory) const {
  memory.buffers = table();
  memory.buffer_entries = entries_;
  memory.runtime_tag = runtime_tag_;
}

}  // namespace gyre
