#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <gyre/runtime/c/gyre.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre_actor_library_text_sources.hpp>
#include <gyre_device_headers_sources.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace gyre {

std::vector<SourceFile> actor_library_headers() {
  std::vector<SourceFile> headers;
  for (const ActorSources* sources : {&gyre_device_headers::sources, &gyre_actor_library_text::sources}) {
    for (const SourceFile& file : sources->files) {
      const bool there = std::any_of(headers.begin(), headers.end(),
                                     [&file](const SourceFile& other) { return other.name == file.name; });
      if (!there) headers.push_back(file);
    }
  }
  return headers;
}

uint64_t actor_library_headers_hash() {
  uint64_t hash = fnv1a("");
  for (const SourceFile& file : actor_library_headers()) hash = fnv1a(file.text, fnv1a(file.name, hash));
  return hash;
}

namespace {

// dlopen maps the segments that a file's head names, wherever it ends: a byte behind the end of a copy that
// was cut short is a SIGBUS.
void check_whole(const std::string& file, const std::string& doing) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const auto size = uint64_t(stream.tellg());
  const auto read = [&stream](uint64_t at, auto& record) {
    return bool(stream.seekg(std::streamoff(at)).read(reinterpret_cast<char*>(&record), sizeof record));
  };
  Elf64_Ehdr head;
  if (!read(0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return;  // dlopen says what it is
  uint64_t needed = head.e_phoff + head.e_phnum * sizeof(Elf64_Phdr);
  for (uint16_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read(head.e_phoff + i * sizeof segment, segment)) break;
    if (segment.p_type == PT_LOAD) needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  if (needed > size) {
    throw Error(
        fmt::format("{}it is cut off: its segments end at byte {}, and the file has {}; copy it again", doing,
                    needed, size));
  }
}

}  // namespace

const ActorLibrary& load_actor_library(const std::string& file, std::string_view name) {
  const std::string doing = fmt::format("loading the actors of {}: ", file);
  check_whole(file, doing);
  const detail::ForkDeferred deferred;
  // By its path: a bare name would be looked for on the library path.
  void* const object = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw Error(doing + dlerror() + "; check the path, and that it was built here");
  using Exported = const ExportedActors*();
  auto* const exported = reinterpret_cast<Exported*>(dlsym(object, ExportedActors::symbol));
  const ExportedActors* const first = exported == nullptr ? nullptr : exported();
  if (first == nullptr || first->magic != ExportedActors::expected_magic) {
    throw Error(fmt::format(
        "{}it exports no actors that this Gyre knows; say GYRE_EXPORT_ACTORS(name, …) in one of its "
        "sources, or make it by gyre validate --build-library",
        doing));
  }
  const uint64_t own = actor_library_headers_hash();
  if (first->headers_hash != own) {
    throw Error(fmt::format(
        "{}it was built with Gyre {} (headers {:016x}), and this is Gyre {}, {} (headers {:016x}); build "
        "it again with this Gyre",
        doing, first->built_with, first->headers_hash, GYRE_VERSION, __VERSION__, own));
  }
  std::string names;
  const ExportedActors* found = nullptr;
  for (const ExportedActors* actors = first; actors != nullptr; actors = actors->next) {
    names = actors->name + (names.empty() ? "" : ", " + names);
    if (name.empty() || name == actors->name) found = actors;
  }
  if (name.empty() && first->next != nullptr) {
    throw Error(fmt::format("{}it exports {}; name one of them", doing, names));
  }
  if (found == nullptr) {
    throw Error(
        fmt::format("{}it exports {}, and no actors by the name {}; name one of those, or say "
                    "GYRE_EXPORT_ACTORS({}, …) in one of its sources",
                    doing, names, name, name));
  }
  return *found->library();
}

}  // namespace gyre
