// The validation's three cases, and 1,048,576 elements: vectors of 10 and 25 inline, of 100 and more in
// device buffers.
#pragma once

#include <fmt/format.h>
#include <gyre/gyre.hpp>
#include <gyre/runtime/builtin_actors.hpp>

#include <string>
#include <vector>

namespace gyre_test {

/// Asks a runtime of the built-in actors, and compares every element;
/// what was wrong first, empty if nothing. Throws where no buffer can be had.
inline std::string wrong_in_three_cases(gyre::Runtime& runtime) {
  using gyre::messages::VectorAddRequest;
  gyre::Client client = runtime.client();
  for (const uint32_t n : {10u, 25u, 100u, 1'048'576u}) {
    std::vector<float> a(n), b(n), sums(n, -1);
    for (uint32_t i = 0; i < n; ++i) {
      a[i] = float(i % 4096);
      b[i] = float(3 * (i % 1000));
    }
    if (n <= 25) {
      const auto reply = client
                             .ask<VectorAddRequest>(gyre::Address<gyre::actors::VectorAdd>{n},
                                                    [&](VectorAddRequest::Builder request) {
                                                      request.setA(kj::arrayPtr(a.data(), n));
                                                      request.setB(kj::arrayPtr(b.data(), n));
                                                    })
                             .get();
      if (!reply) return fmt::format("{} elements: {}", n, reply.error().message());
      const auto result = reply.value()->getResult();
      if (result.size() != n) return fmt::format("{} elements: {} came back", n, result.size());
      for (uint32_t i = 0; i < n; ++i) sums[i] = result[i];
    } else {
      auto x = runtime.allocate<float>(gyre::MemoryKind::device, n);
      auto y = runtime.allocate<float>(gyre::MemoryKind::device, n);
      auto z = runtime.allocate<float>(gyre::MemoryKind::device, n);
      x.write(a);
      y.write(b);
      const auto reply = client
                             .ask<VectorAddRequest>(gyre::Address<gyre::actors::VectorAdd>{n},
                                                    [&](VectorAddRequest::Builder request) {
                                                      request.setLength(n);
                                                      x.set(request.initABuffer());
                                                      y.set(request.initBBuffer());
                                                      z.set(request.initResultBuffer());
                                                    })
                             .get();
      if (!reply) return fmt::format("{} elements: {}", n, reply.error().message());
      if (reply.value()->getProcessed() != n) return fmt::format("{} elements: not all were added", n);
      z.read(sums);
    }
    for (uint32_t i = 0; i < n; ++i) {
      if (sums[i] != a[i] + b[i]) return fmt::format("{} elements: element {} is {}", n, i, sums[i]);
    }
  }
  return {};
}

}  // namespace gyre_test
