// What gyre validate --against sends: messages of a file, or random ones.
#pragma once

#include <capnp/schema-loader.h>
#include <gyre/runtime/actor_set.hpp>

#include <memory>
#include <string>
#include <vector>

#include "random_message.hpp"

namespace gyre::tools {

/// The schemas of actors' messages, read from a CodeGeneratorRequest. Move-only.
class MessageSchemas {
 public:
  /// Throws Error where `request` is none.
  explicit MessageSchemas(const std::string& request);
  /// Throws BadOptions where the schema of that id is not among them.
  capnp::StructSchema of(uint64_t id) const;
  /// The struct's name without its file and scope; the id where it is not known.
  std::string name_of(uint64_t id) const;

 private:
  std::unique_ptr<capnp::SchemaLoader> loader_;
};

/// Where messages come from.
struct MessageSource {
  std::string file;     ///< empty: random
  std::string request;  ///< only messages of this name; empty: whatever the actors answer
  uint64_t count = 1000;
  uint64_t seed = 1;
  uint64_t keys = 1;  ///< message n goes to key n mod keys
  RandomValues values{true, 30};
};

/// One message, ready to be sent.
struct TestMessage {
  const Handler* handler;  ///< of the set that it was made for
  uint64_t key;
  std::vector<std::byte> stream;  ///< in Cap'n Proto's standard framing
};

/// The messages for `actors`, in the order in which they are to be sent; the same for the same seed. A file
/// holds messages in the standard framing, one behind the other, or JSON, one a line. Throws BadOptions where
/// the actors answer no such message, or more than one that a file's messages might be; Error where the file
/// is not what it should be, with the message's number.
std::vector<TestMessage> make_messages(const ActorSet& actors, const MessageSchemas& schemas,
                                       const MessageSource& source);

}  // namespace gyre::tools
