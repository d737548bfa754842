#include <gyre/bridge/errors/error.hpp>

#include <chrono>
#include <cstring>
#include <vector>

#include "baselines/copies.hpp"

namespace gyre::bench {

double measure_host_copies(uint64_t bytes_in, uint64_t bytes_out, uint64_t messages) {
  using Clock = std::chrono::steady_clock;
  std::vector<char> in_from(bytes_in, 1), in_to(bytes_in), out_from(bytes_out, 2), out_to(bytes_out);
  const auto copy = [&](uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      in_from[i % bytes_in] = char(i);
      std::memcpy(in_to.data(), in_from.data(), bytes_in);
      std::memcpy(out_to.data(), out_from.data(), bytes_out);
      asm volatile("" : : "r"(in_to.data()), "r"(out_to.data()) : "memory");
    }
  };
  copy((messages + 9) / 10);
  const auto begin = Clock::now();
  copy(messages);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (in_to != in_from || out_to != out_from) throw Error("copying by memcpy: the copies differ");
  return seconds;
}

}  // namespace gyre::bench
