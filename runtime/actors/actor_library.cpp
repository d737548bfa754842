#include <dlfcn.h>
#include <fmt/format.h>
#include <gyre/runtime/c/gyre.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/actors/actor_library.hpp>
#include <gyre_actor_library_text_sources.hpp>
#include <gyre_builtin_actors_sources.hpp>

#include <algorithm>
#include <filesystem>

namespace gyre {

std::vector<SourceFile> actor_library_headers() {
  std::vector<SourceFile> headers;
  for (const ActorSources* sources : {&gyre_builtin_actors::sources, &gyre_actor_library_text::sources}) {
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

const ActorLibrary& load_actor_library(const std::string& file, std::string_view name) {
  const std::string doing = fmt::format("loading the actors of {}: ", file);
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
