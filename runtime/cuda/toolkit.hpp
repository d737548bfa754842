// The CUDA toolkit's folders at run time: where NVRTC and the headers that actors include are looked for.
#pragma once

#include <gyre/runtime/actors/actor_sources.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gyre::cuda {

/// One place where a toolkit may lie.
struct ToolkitPlace {
  std::string name;  ///< "$CUDA_HOME" or "/usr/local/cuda", for messages
  std::vector<std::string>
      folders;  ///< with include and lib64 or lib in each; empty: the variable is not set
};

/// Returns the places in the order in which they are tried: $CUDA_HOME, /usr/local/cuda, and the folders of
/// $GYRE_CUDA_PATH together, which the Python package sets. Programs with raised privileges ignore the
/// variables.
std::vector<ToolkitPlace> toolkit_places();

/// The headers of one place.
struct ToolkitHeaders {
  std::vector<std::string> folders;  ///< where #include <…> finds them; empty: there are none
  std::string version;               ///< "CUDA 13.0, CCCL 3.0.1"; CCCL is CUB and libcu++

  /// Returns true if one of the folders has the header.
  bool has(std::string_view name) const;
};

/// Finds the first place that has headers of CUDA's major version `major`, which is NVRTC's.
ToolkitHeaders find_toolkit_headers(int major);

/// Says where find_toolkit_headers() looks, what it finds in each place, and what to install.
std::string explain_toolkit_search(int major);

/// A header that a program includes and that is not among the program's own.
struct OutsideHeader {
  std::string_view name;
  bool
      leads;  ///< it may as well come first: the actors' files define no macro and ask no condition before it
};

/// Returns the outside headers that NVRTC meets when it compiles `text`, each once, in their order.
/// Includes that only another compiler sees (#if !defined(__CUDACC_RTC__)) are left out; under other
/// conditions they are not. Refers to `text` and `headers`.
std::vector<OutsideHeader> outside_headers(std::string_view text, std::span<const SourceFile> headers);

/// Returns `text` with each #include "name" written as #include <name>, in as many characters: NVRTC looks
/// for the first form in the current folder too.
std::string with_angle_includes(std::string_view text);

}  // namespace gyre::cuda
