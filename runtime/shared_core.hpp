// A Core held by many threads, without a count that all of them write.
#pragma once

#include <gyre/runtime/thread_number.hpp>

#include <array>
#include <memory>
#include <utility>

namespace gyre::detail {

class Core;

/// Shares of a Core; each thread's come from a count of its own, but for those without a thread_number(), who
/// have one together. With one count for all, what eight threads asked was bound by the cache line that it
/// lies in (docs/performance.md, steps). A value; empty: of none.
class SharedCore {
 public:
  SharedCore() = default;
  SharedCore(const SharedCore&) = default;
  SharedCore(SharedCore&& other) noexcept
      : core_(std::exchange(other.core_, nullptr)), shares_(std::move(other.shares_)) {}
  SharedCore& operator=(SharedCore other) noexcept {
    core_ = other.core_;
    shares_ = std::move(other.shares_);
    return *this;
  }
  /// Allocates.
  explicit SharedCore(const std::shared_ptr<Core>& core) : core_(core.get()) {
    if (core_ == nullptr) return;
    auto shares = std::make_shared<Shares>();
    for (auto& share : *shares) share = {std::make_shared<Owner>(Owner{core}), core_};
    shares_ = std::move(shares);
  }

  Core* operator->() const { return core_; }
  /// The calling thread's. Not of an empty one.
  const std::shared_ptr<Core>& share() const { return (*shares_)[thread_number()]; }

 private:
  struct alignas(128) Owner {  // so its count has a line of its own too
    std::shared_ptr<Core> core;
  };
  using Shares = std::array<std::shared_ptr<Core>, thread_numbers + 1>;

  Core* core_ = nullptr;
  std::shared_ptr<const Shares> shares_;
};

}  // namespace gyre::detail
