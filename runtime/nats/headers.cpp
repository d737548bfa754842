#include <gyre/runtime/nats/headers.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gyre::nats {
namespace {

// Reads all of `text` as a number of digits alone: from_chars itself takes a minus sign.
bool read_number(std::string_view text, int base, uint64_t& number) {
  if (text.empty() || text.front() == '-') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_lower_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// Checks a W3C trace context of version 00: version, trace id, parent id and flags, neither id zero.
bool is_trace(std::string_view text) {
  constexpr std::string_view shape = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
  if (text.size() != shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 'h' ? !is_lower_hex(text[i]) : text[i] != shape[i]) return false;
  }
  const auto zero = [&](size_t from, size_t count) {
    return text.substr(from, count).find_first_not_of('0') == text.npos;
  };
  return !zero(3, 32) && !zero(36, 16);
}

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= max_id_bytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

std::string problem(const char* name, std::string_view text, const char* wanted) {
  return fmt::format("the header {} is \"{}\"; give {}", name, header_text(text, 40), wanted);
}

}  // namespace

std::string read_headers(const HeaderTexts& texts, RequestHeaders& headers) {
  headers = {};
  // First what replies repeat: a refusal repeats it too.
  const bool id_is_good = !texts.id || is_id(*texts.id),
             trace_is_good = !texts.trace || is_trace(*texts.trace);
  if (texts.id && id_is_good) headers.id = *texts.id;
  if (texts.trace && trace_is_good) headers.trace = *texts.trace;
  if (!texts.type) return fmt::format("the header {} is missing; give the request's type id", header::type);
  if (texts.type->size() != 16 || !read_number(*texts.type, 16, headers.type)) {
    return problem(header::type, *texts.type, "the request's type id as 16 hexadecimal digits");
  }
  if (!texts.key) return fmt::format("the header {} is missing; give the actor's key", header::key);
  if (!read_number(*texts.key, 10, headers.key)) {
    return problem(header::key, *texts.key, "a decimal number below 2^64");
  }
  if (texts.timeout) {
    if (!read_number(*texts.timeout, 10, headers.timeout_us) || headers.timeout_us == 0 ||
        headers.timeout_us > max_timeout_us) {
      return problem(header::timeout, *texts.timeout, "1 to 10^12 microseconds, decimal");
    }
  }
  if (!id_is_good) return problem(header::id, *texts.id, "1 to 64 characters from ! to ~");
  if (!trace_is_good) return problem(header::trace, *texts.trace, "a W3C trace context of version 00");
  return {};
}

std::string type_text(uint64_t type_id) { return fmt::format("{:016x}", type_id); }

std::string header_text(std::string_view text, size_t max_bytes) {
  std::string result(text.substr(0, max_bytes));
  // A header's value ends at CR LF; NATS clients in other languages take ASCII at least.
  for (char& c : result) {
    if (uint8_t(c) < 0x20 || uint8_t(c) >= 0x7f) c = ' ';
  }
  return result;
}

}  // namespace gyre::nats
