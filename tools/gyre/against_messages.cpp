#include "against_messages.hpp"

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/messages/json/from_json.hpp>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "programs.hpp"

namespace gyre::tools {

namespace {

kj::Array<capnp::word> words_of(const std::string& bytes) {
  auto words = kj::heapArray<capnp::word>((bytes.size() + 7) / 8);
  std::memset(words.begin(), 0, words.size() * sizeof(capnp::word));
  std::memcpy(words.begin(), bytes.data(), bytes.size());
  return words;
}

std::vector<std::byte> stream_of(capnp::MessageBuilder& message) {
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

std::vector<std::vector<std::byte>> read_json(const std::string& text, capnp::StructSchema schema,
                                              const std::string& file) {
  std::vector<std::vector<std::byte>> messages;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    capnp::MallocMessageBuilder message;
    try {
      fill_from_json(message.initRoot<capnp::DynamicStruct>(schema), line);
    } catch (const BadJson& problem) {
      throw Error(fmt::format("reading --messages-file {}, line {}: {}", file, number, problem.what()));
    }
    messages.push_back(stream_of(message));
  }
  return messages;
}

std::vector<std::vector<std::byte>> read_stream(const std::string& bytes, const std::string& file) {
  std::vector<std::vector<std::byte>> messages;
  kj::ArrayInputStream all(kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
  while (all.tryGetReadBuffer().size() != 0) {
    try {
      capnp::InputStreamMessageReader reader(all);
      capnp::MallocMessageBuilder message;
      message.setRoot(reader.getRoot<capnp::AnyPointer>());
      messages.push_back(stream_of(message));
    } catch (const kj::Exception& exception) {
      throw Error(
          fmt::format("reading --messages-file {}, message {} (from 0): {}; it must hold messages in Cap'n "
                      "Proto's standard "
                      "framing, one behind the other, or JSON, one a line",
                      file, messages.size(), exception.getDescription().cStr()));
    }
  }
  return messages;
}

}  // namespace

MessageSchemas::MessageSchemas(const std::string& request)
    : loader_(std::make_unique<capnp::SchemaLoader>()) {
  try {
    const kj::Array<capnp::word> words = words_of(request);
    capnp::FlatArrayMessageReader reader(words, {.traversalLimitInWords = uint64_t(1) << 32});
    for (const auto node : reader.getRoot<capnp::schema::CodeGeneratorRequest>().getNodes()) {
      loader_->load(node);
    }
  } catch (const kj::Exception& exception) {
    throw Error(fmt::format("reading the schemas of the actors' messages: {}; build the library again",
                            exception.getDescription().cStr()));
  }
}

capnp::StructSchema MessageSchemas::of(uint64_t id) const {
  KJ_IF_MAYBE (schema, loader_->tryGet(id)) return schema->asStruct();
  throw BadOptions(
      fmt::format("the schema of message {:#018x} is not known; name its .capnp file by --schema", id));
}

std::string MessageSchemas::name_of(uint64_t id) const {
  KJ_IF_MAYBE (schema, loader_->tryGet(id)) return schema->getShortDisplayName().cStr();
  return fmt::format("{:#018x}", id);
}

std::vector<TestMessage> make_messages(const ActorSet& actors, const MessageSchemas& schemas,
                                       const MessageSource& source) {
  std::vector<const Handler*> handlers;
  std::string all;
  for (const Handler& handler : actors.handlers()) {
    if (handler.response == 0) continue;  // no reply, nothing to compare
    const std::string name = schemas.name_of(handler.request);
    all += fmt::format(" {} ({})", name, actors.actor_name(handler.actor_type));
    if (source.request.empty() || source.request == name) handlers.push_back(&handler);
  }
  if (all.empty()) {
    throw BadOptions(
        "comparing replies: the actors answer nothing, they take tells alone; name others by --types");
  }
  if (handlers.empty()) {
    throw BadOptions(fmt::format("--request {}: the actors answer{}", source.request, all));
  }
  std::vector<TestMessage> messages;
  const auto add = [&](const Handler* handler, std::vector<std::byte> stream) {
    messages.push_back({handler, messages.size() % source.keys, std::move(stream)});
  };
  if (source.file.empty()) {
    Random random(source.seed);
    for (uint64_t n = 0; n < source.count; ++n) {
      const Handler* const handler = handlers[n % handlers.size()];
      capnp::MallocMessageBuilder message;
      RandomMessage(random, 1 << 20, source.values)
          .fill(message.initRoot<capnp::DynamicStruct>(schemas.of(handler->request)));
      add(handler, stream_of(message));
    }
    return messages;
  }
  if (handlers.size() > 1) {
    throw BadOptions(fmt::format(
        "--messages-file {}: say what its messages are by --request; the actors answer{}", source.file, all));
  }
  const std::string bytes = read_file(source.file, "reading --messages-file");
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && bytes[first] == '{';
  for (auto& stream : json ? read_json(bytes, schemas.of(handlers.front()->request), source.file)
                           : read_stream(bytes, source.file)) {
    add(handlers.front(), std::move(stream));
  }
  if (messages.empty()) throw Error(fmt::format("reading --messages-file {}: it holds none", source.file));
  return messages;
}

}  // namespace gyre::tools
