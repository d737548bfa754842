// The headers of requests on NATS. docs/reference/nats.md is the specification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gyre::nats {

/// Names the headers of requests and replies.
namespace header {
inline constexpr const char* type = "Gyre-Type";
inline constexpr const char* key = "Gyre-Key";
inline constexpr const char* timeout = "Gyre-Timeout";
inline constexpr const char* id = "Gyre-Id";
inline constexpr const char* trace = "traceparent";
inline constexpr const char* status = "Gyre-Status";
inline constexpr const char* reason = "Gyre-Reason";
inline constexpr const char* lease = "Gyre-Lease";
/// JetStream's: drops what was published twice within the stream's window.
inline constexpr const char* message_id = "Nats-Msg-Id";
}  // namespace header

/// Names the outcomes that only a gateway has; other statuses are the names of gyre::Status.
namespace status {
inline constexpr const char* ok = "ok";
inline constexpr const char* no_such_node = "no_such_node";
inline constexpr const char* bad_header = "bad_header";
inline constexpr const char* wrong_shard = "wrong_shard";
}  // namespace status

inline constexpr uint64_t max_timeout_us = 1'000'000'000'000;  // eleven days
inline constexpr size_t max_id_bytes = 64;

/// Holds the headers of a request as text. A header that the message lacks is empty.
struct HeaderTexts {
  std::optional<std::string_view> type, key, timeout, id, trace;
};

/// Holds the headers of a request. The texts refer to those of HeaderTexts.
struct RequestHeaders {
  uint64_t type = 0;        ///< the request's Cap'n Proto type id
  uint64_t key = 0;         ///< the actor's key
  uint64_t timeout_us = 0;  ///< 0: not given
  std::string_view id;      ///< empty: not given
  std::string_view trace;   ///< empty: not given
};

/// Reads the headers of a request.
/// @param headers  receives them; id and trace also if others are wrong
/// @returns        empty if all are well; otherwise what is wrong, naming the header and what it holds. The
///                 text has at most 200 bytes, and none that a header must not have.
std::string read_headers(const HeaderTexts& texts, RequestHeaders& headers);

/// Returns a message type's id as Gyre-Type has it: 16 hexadecimal digits.
std::string type_text(uint64_t type_id);

/// Returns `text` as a header may hold it: at most `max_bytes`, with a space for each control character.
std::string header_text(std::string_view text, size_t max_bytes = 1000);

}  // namespace gyre::nats
