#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>

#include <chrono>
#include <cstring>
#include <vector>

#include "baselines/plain_copies.hpp"
#include "threads.hpp"

namespace gyre::bench {

const char* name(Direction direction) {
  return direction == Direction::in ? "in" : direction == Direction::out ? "out" : "both";
}
const char* name(HostMemory memory) { return memory == HostMemory::pinned ? "pinned" : "pageable"; }

void expect_equal(const void* got, const void* expected, uint64_t bytes, const std::string& what) {
  if (std::memcmp(got, expected, bytes) == 0) return;
  throw Error(
      fmt::format("{}: the {} bytes that arrived differ from those sent: no figure of this run "
                  "counts; please report it",
                  what, bytes));
}

namespace {

class HostCopies final : public PlainCopies {
 public:
  explicit HostCopies(uint64_t bytes) : from_(bytes), in_(bytes), out_(bytes) {
    for (uint64_t i = 0; i < bytes; ++i) from_[i] = char(i * 31 + i / 4096);
  }

  // Memory is of one kind here.
  double copies(Direction direction, HostMemory, uint64_t times) override {
    const bool both = direction == Direction::both;
    const auto copy = [&](uint32_t t, uint64_t n) {
      std::vector<char>& to = direction == Direction::out || t == 1 ? out_ : in_;
      for (uint64_t i = 0; i < n; ++i) {
        threads_->copy(to.data(), from_.data(), from_.size());
        asm volatile("" : : "r"(to.data()) : "memory");
      }
    };
    const double seconds = run_together(
        both ? 2 : 1, [&](uint32_t t) { copy(t, 1); }, [&](uint32_t t) { copy(t, times); });
    if (direction != Direction::out)
      expect_equal(in_.data(), from_.data(), from_.size(), "copying by memcpy");
    if (direction != Direction::in)
      expect_equal(out_.data(), from_.data(), from_.size(), "copying by memcpy");
    return seconds;
  }
  double payloads(Direction direction, uint64_t times) override {
    return copies(direction, HostMemory::pageable, times);
  }

 private:
  const std::shared_ptr<gyre::detail::CopyThreads> threads_ = gyre::detail::CopyThreads::shared();
  std::vector<char> from_, in_, out_;
};

}  // namespace

std::unique_ptr<PlainCopies> plain_copies_of_host(uint64_t bytes) {
  return std::make_unique<HostCopies>(bytes);
}

}  // namespace gyre::bench
