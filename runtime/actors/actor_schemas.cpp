#include <capnp/message.h>
#include <capnp/schema-loader.h>
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/actors/actor_schemas.hpp>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace gyre {

namespace {

void collect(capnp::Type type, std::map<uint64_t, capnp::Schema>& found) {
  while (type.isList()) type = type.asList().getElementType();
  if (type.isEnum()) found.emplace(type.asEnum().getProto().getId(), type.asEnum());
  if (!type.isStruct()) return;
  const capnp::StructSchema schema = type.asStruct();
  if (!found.emplace(schema.getProto().getId(), schema).second) return;
  for (const auto field : schema.getFields()) collect(field.getType(), found);
}

}  // namespace

std::map<uint64_t, capnp::Schema> schemas_below(std::span<const capnp::StructSchema> roots) {
  std::map<uint64_t, capnp::Schema> found;
  for (const capnp::StructSchema& root : roots) {
    if (root != capnp::StructSchema()) collect(capnp::Type(root), found);
  }
  return found;
}

std::vector<std::byte> encode_schemas(const std::map<uint64_t, capnp::Schema>& schemas) {
  capnp::MallocMessageBuilder message;
  auto nodes = message.initRoot<capnp::schema::CodeGeneratorRequest>().initNodes(uint32_t(schemas.size()));
  uint32_t at = 0;
  for (const auto& [id, schema] : schemas) nodes.setWithCaveats(at++, schema.getProto());
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

std::map<uint64_t, capnp::Schema> load_schemas(std::span<const std::byte> bytes) {
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  if (words.size() != 0) std::memcpy(static_cast<void*>(words.begin()), bytes.data(), words.asBytes().size());
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 16 * words.size() + 1024;
  capnp::FlatArrayMessageReader reader(words, options);
  auto loader = std::make_unique<capnp::SchemaLoader>();
  for (const auto node : reader.getRoot<capnp::schema::CodeGeneratorRequest>().getNodes()) loader->load(node);
  std::map<uint64_t, capnp::Schema> found;
  for (const capnp::Schema& schema : loader->getAllLoaded()) found.emplace(schema.getProto().getId(), schema);
  const detail::ForkDeferred deferred;
  static std::mutex mutex;
  static auto& kept =
      *new std::vector<std::unique_ptr<capnp::SchemaLoader>>;  // never destroyed: see the declaration
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(loader));
  return found;
}

}  // namespace gyre
