#include "vectors.hpp"

#include <fmt/format.h>
#include <kj/exception.h>

#include <bit>
#include <cmath>

namespace gyre::tools {

using messages::Operation;
using messages::VectorAddRequest;
using messages::VectorAddResponse;

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::ADD:
      return "add";
    case Operation::SUBTRACT:
      return "subtract";
    case Operation::MULTIPLY:
      return "multiply";
    case Operation::DIVIDE:
      return "divide";
  }
  return "?";
}

namespace {

float apply(Operation operation, float a, float b) {
  switch (operation) {
    case Operation::ADD:
      return a + b;
    case Operation::SUBTRACT:
      return a - b;
    case Operation::MULTIPLY:
      return a * b;
    case Operation::DIVIDE:
      return a / b;
  }
  return 0;
}

// Equal bits; any NaN equals any NaN, for the engines' NaNs have different bits.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

std::string check_head(const Vectors& sent, const VectorAddResponse::Reader& got) {
  if (!got.getSuccess()) return fmt::format("success is false, error {}", unsigned(got.getError()));
  if (got.getProcessed() == sent.a.size()) return {};
  return fmt::format("processed {} of {} elements", got.getProcessed(), sent.a.size());
}

template <class Elements>
std::string compare(const Vectors& sent, const Elements& result) {
  const size_t n = sent.a.size();
  if (result.size() != n) return fmt::format("{} elements came back, not {}", result.size(), n);
  for (uint32_t i = 0; i < n; ++i) {
    const float expected = apply(sent.operation, sent.a[i], sent.b[i]);
    if (!same(result[i], expected)) {
      return fmt::format("element {}: {} {} {} gave {} (bits {:08x}), not {} ({:08x})", i, sent.a[i],
                         name_of(sent.operation), sent.b[i], result[i], std::bit_cast<uint32_t>(result[i]),
                         expected, std::bit_cast<uint32_t>(expected));
    }
  }
  return {};
}

// The official library follows a far pointer to say whether there is one; workers do not.
bool has_buffer(const VectorAddRequest::Reader& request) {
  try {
    return request.hasABuffer();
  } catch (const kj::Exception&) {
    return true;
  }
}

}  // namespace

void fill(const Vectors& vectors, VectorAddRequest::Builder request) {
  request.setOperation(vectors.operation);
  request.setA(kj::arrayPtr(vectors.a.data(), vectors.a.size()));
  request.setB(kj::arrayPtr(vectors.b.data(), vectors.b.size()));
}

std::string check(const Vectors& sent, const VectorAddResponse::Reader& got) {
  if (std::string wrong = check_head(sent, got); !wrong.empty()) return wrong;
  return compare(sent, got.getResult());
}

std::string check_in_buffer(const Vectors& sent, const VectorAddResponse::Reader& got,
                            std::span<const float> result) {
  if (std::string wrong = check_head(sent, got); !wrong.empty()) return wrong;
  if (got.getResult().size() != 0)
    return fmt::format("{} elements came back beside the buffer", got.getResult().size());
  return compare(sent, result);
}

Vectors ramp(size_t n, float factor, Operation operation) {
  Vectors vectors{operation, std::vector<float>(n), std::vector<float>(n)};
  for (size_t i = 0; i < n; ++i) {
    vectors.a[i] = float(i + 1);
    vectors.b[i] = factor * float(i + 1);
  }
  return vectors;
}

// Root pointer, two data words, five pointers; then two lists of whole words, or three handles of three
// words.
constexpr size_t head_bytes = 8 + 2 * 8 + 5 * 8;
size_t request_bytes(size_t n) { return head_bytes + 2 * ((n + 1) / 2 * 8); }
size_t request_bytes_in_buffers() { return head_bytes + 3 * 3 * 8; }

size_t largest_inline(uint32_t body_capacity) {
  size_t n = 0;
  while (request_bytes(n + 1) <= body_capacity) ++n;
  return n;
}

std::string check_any(const VectorAddRequest::Reader& sent, const VectorAddResponse::Reader& got) {
  using Error = VectorAddResponse::Error;
  if (has_buffer(sent)) {  // nobody made buffers for it
    if (sent.getOperation() > Operation::DIVIDE && got.getError() == Error::UNKNOWN_OPERATION) return {};
    return "a handle that nobody set was taken for good";
  }
  const auto a = sent.getA(), b = sent.getB();
  const Error expected = a.size() != b.size()                      ? Error::LENGTHS_DIFFER
                         : sent.getOperation() > Operation::DIVIDE ? Error::UNKNOWN_OPERATION
                                                                   : Error::NONE;
  if (got.getError() != expected)
    return fmt::format("error {}, not {}", unsigned(got.getError()), unsigned(expected));
  if (expected != Error::NONE) return got.getSuccess() ? "success in spite of an error" : "";
  Vectors vectors{sent.getOperation(), {}, {}};
  for (const float value : a) vectors.a.push_back(value);
  for (const float value : b) vectors.b.push_back(value);
  return check(vectors, got);
}

}  // namespace gyre::tools
