// The counts of a gateway, which several threads add to, and their names.
#pragma once

#include <gyre/runtime/nats/gateway.hpp>

#include <atomic>
#include <cstdint>

namespace gyre::nats::detail {

/// Adds up a GatewayBooks. Thread-safe. The counts are relaxed: they order nothing.
class Counts {
 public:
  void add(uint64_t GatewayBooks::*count, uint64_t n = 1) {
    std::atomic_ref(books_.*count).fetch_add(n, std::memory_order_relaxed);
  }
  void set(uint64_t GatewayBooks::*count, uint64_t n) {
    std::atomic_ref(books_.*count).store(n, std::memory_order_relaxed);
  }
  GatewayBooks books() {
    GatewayBooks copy;
    for (const CountField& field : count_fields()) {
      copy.*field.count = std::atomic_ref(books_.*field.count).load(std::memory_order_relaxed);
    }
    return copy;
  }

 private:
  GatewayBooks books_;
};

}  // namespace gyre::nats::detail
