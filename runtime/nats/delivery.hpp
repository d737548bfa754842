// What JetStream says of a message that it delivers, and of a consumer.
#pragma once

#include <cstdint>
#include <string_view>

namespace gyre::nats::detail {

/// What a delivery's reply subject says: `$JS.ACK.…`.
struct Delivery {
  uint64_t number = 0;    ///< 1 of the first delivery
  int64_t stored_ns = 0;  ///< when JetStream stored the message, nanoseconds since 1970 by its clock
  /// Returns false if the subject is no such one. `delivery` is unspecified then.
  static bool read(std::string_view reply_subject, Delivery& delivery);
};

/// Returns how many of its messages a consumer has not yet delivered: `num_pending` of a reply to
/// `CONSUMER.INFO`. 0 if the text is no such reply.
uint64_t undelivered_in(std::string_view consumer_info);
/// Returns whether a reply to CONSUMER.INFO is an error: there is no such consumer, or no such stream.
bool is_error(std::string_view consumer_info);

}  // namespace gyre::nats::detail
