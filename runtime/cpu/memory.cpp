#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/packet.hpp>
#include <gyre/runtime/cpu/memory.hpp>

#include <cstdlib>
#include <cstring>

namespace gyre {

namespace {
constexpr uint64_t alignment = 256;
}

HostBufferMemory::HostBufferMemory(uint32_t entries)
    : BufferMemory(entries), table_(std::make_unique<BufferEntry[]>(entries)) {}

HostBufferMemory::~HostBufferMemory() {
  if (leaked_) (void)table_.release();
}

std::string HostBufferMemory::refusal(MemoryKind kind) const {
  if (kind != MemoryKind::imported) return {};
  return "the workers of the CPU engine have no device memory; allocate a buffer and copy the elements, or "
         "launch with --engine cuda";
}

MemoryBlock HostBufferMemory::allocate(MemoryKind kind, uint64_t bytes) {
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) {
    throw Error(
        fmt::format("allocating a {} buffer of {} bytes: the host has no memory for it; ask for less, or "
                    "free others",
                    name(kind), bytes));
  }
  return {kind, bytes, reinterpret_cast<uint64_t>(memory), memory};
}

void HostBufferMemory::release(const MemoryBlock& block) noexcept { std::free(block.host); }

void HostBufferMemory::copy_in(const MemoryBlock& block, uint64_t offset, const void* from, uint64_t bytes) {
  std::memcpy(static_cast<char*>(block.host) + offset, from, bytes);
}

void HostBufferMemory::copy_out(const MemoryBlock& block, uint64_t offset, void* to, uint64_t bytes) {
  std::memcpy(to, static_cast<const char*>(block.host) + offset, bytes);
}

void HostBufferMemory::zero(const MemoryBlock& block, uint64_t bytes) { std::memset(block.host, 0, bytes); }

void HostBufferMemory::set_entry(uint32_t index, const BufferEntry& entry) {
  uint64_t words[3];
  static_assert(sizeof words == sizeof entry);
  std::memcpy(words, &entry, sizeof entry);
  auto* const there = reinterpret_cast<uint64_t*>(&table_[index]);
  if (entry.address != 0) {
    Memory::store_relaxed(there[0], words[0]);
    Memory::store_relaxed(there[1], words[1]);
  }
  Memory::store_release(there[2], words[2]);  // pairs with the load in detail::find_buffer()
}

}  // namespace gyre
