#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/memory/buffers.hpp>
#include <gyre/runtime/memory/release_later.hpp>

#include <algorithm>
#include <mutex>

namespace gyre::detail {

namespace {

constexpr uint64_t granularity = 256;
constexpr int64_t releases_take_ns = 10'000'000'000;  // waited for at most, where there is no memory

std::string doing(MemoryKind kind, uint64_t bytes) {
  return fmt::format("allocating a {} buffer of {} bytes: ", name(kind), bytes);
}

}  // namespace

void Buffers::Count::add(const MemoryBlock& block) {
  buffers.fetch_add(1, std::memory_order_relaxed);
  bytes.fetch_add(block.bytes, std::memory_order_relaxed);
}
void Buffers::Count::take(const MemoryBlock& block) {
  buffers.fetch_sub(1, std::memory_order_relaxed);
  bytes.fetch_sub(block.bytes, std::memory_order_relaxed);
}
Ledger::Count Buffers::Count::read() const {
  return {buffers.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed)};
}

Buffers::Buffers(BufferMemory& memory, const std::deque<HostBridge>& bridges)
    : memory_(memory), bridges_(bridges), generations_(memory.entries(), 0) {
  for (uint32_t index = memory.entries(); index > 0; --index) free_indices_.push_back(index - 1);
}

Buffers::~Buffers() {
  if (workers_.load(std::memory_order_acquire) == Workers::stuck) return;
  for (const Retired& one : retired_) memory_.release(one.block);
  for (const Retired& one : retired_imports_) memory_.release(one.block);
}

Tickets Buffers::sent() const {
  Tickets tickets;
  tickets.reserve(bridges_.size());
  for (const HostBridge& bridge : bridges_) tickets.push_back(bridge.claimed());
  return tickets;
}

bool Buffers::past(const Tickets& tickets) const {
  if (workers_.load(std::memory_order_acquire) == Workers::ended) return true;
  for (size_t worker = 0; worker < tickets.size(); ++worker) {
    if (bridges_[worker].consumed() < tickets[worker]) return false;
  }
  return true;
}

// An entry is used again only when no message that was sent before it was freed can be read any more: a
// worker reads its words one after the other.
uint32_t Buffers::take_index() {
  while (!freed_indices_.empty() && past(*freed_indices_.front().sent_before)) {
    free_indices_.push_back(freed_indices_.front().index);
    freed_indices_.pop_front();
  }
  if (free_indices_.empty()) {
    throw Error(
        fmt::format("allocating a buffer: all {} there may be are in use ({}), or were freed while a worker "
                    "still had messages sent before that ({}); free some, let the workers answer, or launch "
                    "with larger Options::max_buffers",
                    memory_.entries(), memory_.entries() - freed_indices_.size(), freed_indices_.size()));
  }
  const uint32_t index = free_indices_.back();
  free_indices_.pop_back();
  return index;
}

// Takes the smallest retired block of at least `bytes` and at most `times` as many that no worker can use any
// more; empty if there is none.
MemoryBlock Buffers::reuse_retired(MemoryKind kind, uint64_t bytes, uint64_t times) {
  auto best = retired_.end();
  for (auto one = retired_.begin(); one != retired_.end(); ++one) {
    if (one->block.kind != kind || one->block.bytes < bytes || one->block.bytes / times > bytes) continue;
    if (best != retired_.end() && best->block.bytes <= one->block.bytes) continue;
    if (past(*one->sent_before)) best = one;
  }
  if (best == retired_.end()) return {};
  const MemoryBlock block = best->block;
  retired_counts_[uint32_t(kind)].take(block);
  retired_.erase(best);
  return block;
}

// New memory, or where there is none a retired block of any size that is large enough.
MemoryBlock Buffers::allocate_or_reuse(MemoryKind kind, uint64_t bytes) {
  try {
    return memory_.allocate(kind, bytes);
  } catch (const Error& error) {
    // Exports that the program has released give their blocks back a moment later.
    (void)wait_for_releases(host_now_ns() + releases_take_ns);
    const std::lock_guard lock(mutex_);
    const MemoryBlock block = reuse_retired(kind, bytes, ~uint64_t(0));
    if (block.bytes != 0) return block;
    throw Error(
        fmt::format("{}; {} bytes of freed {} buffers are kept until the runtime ends, none of them large "
                    "enough",
                    error.what(), retired_counts_[uint32_t(kind)].read().bytes, name(kind)),
        error.status());
  }
}

Buffers::Record Buffers::allocate(MemoryKind kind, messages::view::ElementType element, uint64_t bytes) {
  if (kind > MemoryKind::unified) {
    throw Error(fmt::format(
        "allocating a buffer of memory kind {}: must be device, pinned or unified (0 to 2)", int(kind)));
  }
  if (bytes == 0) throw Error(doing(kind, bytes) + "a buffer has an element at least; ask for more");
  if (const std::string refusal = memory_.refusal(kind); !refusal.empty()) {
    throw Error(doing(kind, bytes) + refusal);
  }
  if (kind == MemoryKind::unified && bytes > largest_unified) {
    throw Error(doing(kind, bytes) +
                fmt::format("managed memory is for small buffers, {} bytes at most; use MemoryKind::device "
                            "or MemoryKind::pinned",
                            largest_unified));
  }
  Record record{{}, 0, 0, element, bytes};
  // Past 2^48 no machine has memory, and rounding must not wrap.
  const uint64_t rounded = std::min(bytes, uint64_t(1) << 48) / granularity * granularity +
                           (bytes % granularity != 0 ? granularity : 0);
  {
    const std::lock_guard lock(mutex_);
    begin(doing(kind, bytes), record);
    record.block = reuse_retired(kind, rounded, 2);
  }
  try {
    if (record.block.bytes == 0) record.block = allocate_or_reuse(kind, rounded);
    memory_.zero(record.block, bytes);
    memory_.set_entry(record.index, {record.block.address, bytes, record.generation, uint32_t(element)});
  } catch (...) {
    const std::lock_guard lock(mutex_);
    free_indices_.push_back(record.index);
    if (record.block.bytes != 0) retire(record.block, std::make_shared<const Tickets>());
    throw;
  }
  in_use_[uint32_t(kind)].add(record.block);
  return record;
}

// With the lock: gives a record its place in the table.
void Buffers::begin(const std::string& doing, Record& record) {
  if (workers_.load(std::memory_order_acquire) != Workers::live) {
    throw Error(doing + "the runtime has terminated; launch a new one");
  }
  record.index = take_index();
  if (++generations_[record.index] == 0) ++generations_[record.index];
  record.generation = generations_[record.index];
}

Buffers::Record Buffers::import(ForeignMemory memory, messages::view::ElementType element,
                                BufferAccess access) {
  release_past_imports();
  Record record{{}, 0, 0, element, memory.bytes, access};
  {
    const std::lock_guard lock(mutex_);
    begin(fmt::format("importing {} bytes at {:#x}: ", memory.bytes, memory.address), record);
  }
  try {
    record.block = memory_.import(std::move(memory));
    const uint32_t flags = access == BufferAccess::read_only ? BufferEntry::read_only : 0;
    memory_.set_entry(record.index,
                      {record.block.address, record.bytes, record.generation, uint32_t(element) | flags});
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      free_indices_.push_back(record.index);
    }
    if (record.block.bytes != 0) memory_.release(record.block);  // nobody has its handle
    throw;
  }
  in_use_[uint32_t(MemoryKind::imported)].add(record.block);
  return record;
}

void Buffers::retire(const MemoryBlock& block, std::shared_ptr<const Tickets> sent_before) {
  (block.kind == MemoryKind::imported ? retired_imports_ : retired_)
      .push_back({block, std::move(sent_before)});
  retired_counts_[uint32_t(block.kind)].add(block);
}

void Buffers::free(const Record& record) noexcept {
  if (withdraw(record)) give_back(record.block);
}

bool Buffers::withdraw(const Record& record) noexcept {
  bool entry_cleared = true;
  try {
    memory_.set_entry(record.index, {0, 0, 0, 0});
  } catch (const std::exception&) {
    entry_cleared = false;
  }
  try {
    const auto sent_before = std::make_shared<const Tickets>(sent());
    const std::lock_guard lock(mutex_);
    if (workers_.load(std::memory_order_acquire) == Workers::ended) return true;
    if (!entry_cleared)
      return false;  // workers may still take the handle: it stays in use, in the ledger too
    freed_indices_.push_back({record.index, sent_before});
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // nowhere to note that it is free: it stays in use, in the ledger too
  }
}

void Buffers::give_back(const MemoryBlock& block) noexcept {
  bool release = false;
  try {
    const auto sent_before = std::make_shared<const Tickets>(sent());
    const std::lock_guard lock(mutex_);
    release = workers_.load(std::memory_order_acquire) == Workers::ended;
    if (!release) retire(block, sent_before);
    in_use_[uint32_t(block.kind)].take(block);
  } catch (const std::bad_alloc&) {
    return;  // likewise
  }
  if (release) memory_.release(block);
  release_past_imports();
}

// With the lock.
std::vector<Buffers::Retired> Buffers::take_past_imports() {
  const auto first = std::stable_partition(retired_imports_.begin(), retired_imports_.end(),
                                           [this](const Retired& one) { return !past(*one.sent_before); });
  std::vector<Retired> taken(std::make_move_iterator(first), std::make_move_iterator(retired_imports_.end()));
  retired_imports_.erase(first, retired_imports_.end());
  for (const Retired& one : taken) retired_counts_[uint32_t(MemoryKind::imported)].take(one.block);
  return taken;
}

void Buffers::release_past_imports() noexcept {
  if (retired_counts_[uint32_t(MemoryKind::imported)].read().buffers == 0) return;
  try {
    std::vector<Retired> past;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock || workers_.load(std::memory_order_acquire) == Workers::stuck) return;
      past = take_past_imports();
    }
    for (const Retired& one : past) memory_.release(one.block);
  } catch (const std::bad_alloc&) {  // later, then
  }
}

Ledger Buffers::ledger() const {
  Ledger ledger;
  for (uint32_t kind = 0; kind < memory_kinds; ++kind) {
    ledger.in_use[kind] = in_use_[kind].read();
    ledger.retired[kind] = retired_counts_[kind].read();
  }
  return ledger;
}

bool Buffers::workers_ended(int64_t deadline_ns) {
  workers_.store(Workers::ended, std::memory_order_release);
  std::vector<Retired> retired;
  {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!lock.try_lock_until(steady_time(deadline_ns))) return false;
    retired.swap(retired_);
    for (Retired& one : retired_imports_) retired.push_back(std::move(one));
    retired_imports_.clear();
    for (const Retired& one : retired) retired_counts_[uint32_t(one.block.kind)].take(one.block);
  }
  for (const Retired& one : retired) memory_.release(one.block);
  return true;
}

}  // namespace gyre::detail
