#include <dlfcn.h>
#include <fmt/format.h>
#include <gyre/bridge/error.hpp>
#include <gyre/runtime/actor_library.hpp>
#include <gyre/runtime/actor_set.hpp>
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

const ActorLibrary& load_actor_library(const std::string& file) {
  const std::string doing = fmt::format("loading the actor library {}: ", file);
  // By its path: a bare name would be looked for on the library path.
  void* const library = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(doing + dlerror() + "; check the path, and that it was built here");
  const auto* const actors = static_cast<const ActorLibrary*>(dlsym(library, ActorLibrary::symbol));
  if (actors == nullptr || actors->magic != ActorLibrary::expected_magic) {
    throw Error(fmt::format("{}it exports {}; make it by gyre validate --build-library", doing,
                            actors == nullptr ? fmt::format("no {}", ActorLibrary::symbol)
                                              : fmt::format("something else as {}", ActorLibrary::symbol)));
  }
  if (const uint64_t own = actor_library_headers_hash(); actors->headers_hash != own) {
    throw Error(fmt::format(
        "{}it was compiled with headers of another Gyre (their hash is {:016x}, this program's {:016x}); "
        "build it again with this program",
        doing, actors->headers_hash, own));
  }
  return *actors;
}

ActorSet ActorSet::from_library(const ActorLibrary& library) {
  std::vector<SourceText> headers;
  for (const SourceFile& file : library.headers) {
    headers.push_back({std::string(file.name), std::string(file.text)});
  }
  ActorSet set = from_source(std::string(library.text), {library.types.begin(), library.types.end()},
                             std::move(headers));
  set.make_worker_ = library.make_worker;
  return set.described(
      read_description({static_cast<const std::byte*>(library.description), library.description_bytes}));
}

}  // namespace gyre
