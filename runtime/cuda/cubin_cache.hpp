// Compiled programs on disk, found again by everything that they were compiled from.
#pragma once

#include <gyre/runtime/cuda/program.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gyre::cuda {

/// A folder of compiled programs, a file each. A file is named by a hash of the inputs and holds the inputs
/// themselves, which are compared byte for byte. Any number of processes and threads may use a folder at
/// once: files are written whole or not at all. Nothing here is an error: what cannot be read is a miss, and
/// a damaged file is written anew.
class CubinCache {
 public:
  static constexpr uint64_t default_bytes = uint64_t(256) << 20;

  /// $GYRE_CACHE_DIR, else gyre in $XDG_CACHE_HOME, else .cache/gyre in $HOME. Empty where none is set to an
  /// absolute path.
  static std::string default_folder();

  /// The cache in `folder`, made with mode 0700 if it is not there. It is refused if it is somebody else's,
  /// or if others may write to it: what it holds is run. `bytes_kept`: of all files; the oldest used go
  /// first.
  explicit CubinCache(std::string folder, uint64_t bytes_kept = default_bytes);
  ~CubinCache();
  CubinCache(const CubinCache&) = delete;
  CubinCache& operator=(const CubinCache&) = delete;

  /// Why the folder is not used; empty if it is.
  const std::string& refusal() const { return refusal_; }
  /// What was stored for exactly these inputs; compile_ms is 0.
  std::optional<CompiledKernel> find(std::string_view inputs) const;
  /// Keeps `kernel` for `inputs`, in place of what is there. Returns why it could not; empty if it did.
  std::string store(std::string_view inputs, const CompiledKernel& kernel) const;
  /// The name, in the folder, of the file for `inputs`.
  static std::string file_name(std::string_view inputs);

 private:
  void make_room() const;

  std::string folder_;
  uint64_t bytes_kept_;
  std::string refusal_;
  int directory_ = -1;
};

}  // namespace gyre::cuda
