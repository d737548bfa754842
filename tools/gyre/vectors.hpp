// The vectors that validation sends, and what must come back.
#pragma once

#include <gyre/messages/vector_add.official.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::tools {

/// A VectorAdd request.
struct Vectors {
  messages::Operation operation = messages::Operation::ADD;
  std::vector<float> a, b;
};

std::string_view name_of(messages::Operation operation);

/// A[i] = i, B[i] = factor * i, i = 1..n.
Vectors ramp(size_t n, float factor, messages::Operation operation);

void fill(const Vectors& vectors, messages::VectorAddRequest::Builder request);

/// What is wrong with the response; empty if every element is right: equal bits, but any NaN equals any NaN,
/// for the engines' NaNs have different bits.
std::string check(const Vectors& sent, const messages::VectorAddResponse::Reader& got);
/// As check, of a request whose elements are in buffers: `result` is what its result's buffer holds.
std::string check_in_buffer(const Vectors& sent, const messages::VectorAddResponse::Reader& got,
                            std::span<const float> result);
/// As check, of a request that was read from bytes and may be one that VectorAdd has to refuse.
std::string check_any(const messages::VectorAddRequest::Reader& sent,
                      const messages::VectorAddResponse::Reader& got);

/// Bytes of the body of a request of n elements, and the most elements whose request fits `body_capacity`
/// bytes.
size_t request_bytes(size_t n);
/// Bytes of the body of a request whose elements are in buffers.
size_t request_bytes_in_buffers();
size_t largest_inline(uint32_t body_capacity);

}  // namespace gyre::tools
