// The schemas of built-in messages as gyre validate --against gets those of a file.
#pragma once

#include <capnp/message.h>
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <gyre/messages/vector_add.official.hpp>

#include <string>

namespace gyre_test {

namespace messages = gyre::messages;

/// What the schema compiler would write of VectorAdd's messages: a CodeGeneratorRequest, as a stream.
inline std::string vector_add_request() {
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<capnp::schema::CodeGeneratorRequest>();
  const capnp::schema::Node::Reader nodes[] = {
      capnp::Schema::from<messages::VectorAddRequest>().getProto(),
      capnp::Schema::from<messages::VectorAddResponse>().getProto(),
      capnp::Schema::from<messages::VectorAddResponse::Error>().getProto(),
      capnp::Schema::from<messages::Operation>().getProto(),
      capnp::Schema::from<messages::BufferHandle>().getProto(),
      capnp::Schema::from<messages::ElementType>().getProto()};
  auto list = request.initNodes(uint32_t(std::size(nodes)));
  for (uint32_t i = 0; i < std::size(nodes); ++i) list.setWithCaveats(i, nodes[i]);
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asChars();
  return {bytes.begin(), bytes.size()};
}

}  // namespace gyre_test
