#include "schema_file.hpp"

#include <capnp/dynamic.h>
#include <capnp/message.h>
#include <capnp/serialize-text.h>
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <gyre/runtime/errors.hpp>

#include <cstring>

namespace gyre::tools {
namespace {

std::string text_of(const kj::Exception& exception) {
  // Of a schema, file and line are its own; of other errors they are in the library's source.
  const std::string_view file = exception.getFile();
  const std::string description = exception.getDescription().cStr();
  if (file.ends_with(".c++") || file.ends_with(".h")) return description;
  return fmt::format("{}:{}: {}", file, exception.getLine(), description);
}

// Keeps the library from printing what it throws, and its warnings.
class Quiet final : public kj::ExceptionCallback {
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {}
};

template <class Call>
auto call_quietly(const std::string& doing, const Call& call) {
  const Quiet quiet;
  try {
    return call();
  } catch (const kj::Exception& exception) {
    throw BadOptions(fmt::format("{}: {}", doing, text_of(exception)));
  }
}

}  // namespace

SchemaFile::SchemaFile(const std::string& file, const std::vector<std::string>& folders) : file_(file) {
  // The library looks for the current folder, and warns if the variable PWD has another.
  disk_ = call_quietly("looking for the current folder", [] { return kj::newDiskFilesystem(); });
  const kj::PathPtr here = disk_->getCurrentPath();
  const auto open = [&](const std::string& folder) {
    KJ_IF_MAYBE (found, disk_->getRoot().tryOpenSubdir(here.evalNative(folder))) {
      folders_.push_back(kj::mv(*found));
      return true;
    }
    return false;
  };
  for (const std::string& folder : folders) {
    if (!open(folder)) throw BadOptions(fmt::format("looking for imported schemas: no folder {}", folder));
  }
  open("/usr/local/include");
  open("/usr/include");
  std::vector<const kj::ReadableDirectory*> imports;
  for (const auto& folder : folders_) imports.push_back(folder.get());
  schema_ = call_quietly(fmt::format("reading the schema {}", file), [&] {
    return parser_.parseFromDirectory(disk_->getRoot(), here.evalNative(file),
                                      kj::arrayPtr(imports.data(), imports.size()));
  });
}

capnp::StructSchema SchemaFile::struct_of(const std::string& name) const {
  const auto missing = [&] {
    return BadOptions(fmt::format("looking for {} in {}: it has no such struct", name, file_));
  };
  capnp::ParsedSchema schema = schema_;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    KJ_IF_MAYBE (nested, schema.findNested(name.substr(begin, end - begin))) {
      schema = *nested;
    } else {
      throw missing();
    }
    begin = end + 1;
  }
  if (!schema.getProto().isStruct()) throw missing();
  if (schema.getProto().getIsGeneric()) {
    throw BadOptions(fmt::format("using {} of {}: messages of generic structs have no type id", name, file_));
  }
  return schema.asStruct();
}

uint64_t SchemaFile::type_id(const std::string& name) const { return struct_of(name).getProto().getId(); }

std::string SchemaFile::encode(const std::string& name, const std::string& text) const {
  const capnp::StructSchema type = struct_of(name);
  return call_quietly(fmt::format("reading {} as struct {}", text, name), [&] {
    capnp::MallocMessageBuilder message;
    capnp::TextCodec().decode(text, message.initRoot<capnp::DynamicStruct>(type));
    const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
    const auto bytes = words.asChars();
    return std::string(bytes.begin(), bytes.size());
  });
}

std::string SchemaFile::decode(const std::string& name, const std::string& stream) const {
  const capnp::StructSchema type = struct_of(name);
  try {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = UINT64_MAX;  // the message is here, and is shown once
    kj::ArrayInputStream input(kj::arrayPtr(reinterpret_cast<const kj::byte*>(stream.data()), stream.size()));
    capnp::InputStreamMessageReader message(input, options);
    capnp::TextCodec codec;
    codec.setPrettyPrint(true);
    return codec.encode(message.getRoot<capnp::DynamicStruct>(type)).cStr();
  } catch (const kj::Exception& exception) {
    throw Error(
        fmt::format("showing the reply of {} bytes as struct {}: {}; leave out --reply to get its bytes",
                    stream.size(), name, text_of(exception)));
  }
}

}  // namespace gyre::tools
