// The commit that this program was built from.
#pragma once

#include <string>

namespace gyre::tools {

/// Of the source tree as it was when this program was built.
struct BuildCommit {
  std::string id;      ///< 12 hexadecimal digits; "unknown" where the tree was not a git repository
  bool dirty = false;  ///< files under version control had changes that were not committed

  /// "0123456789ab", "0123456789ab and changes", "unknown".
  std::string text() const { return dirty ? id + " and changes" : id; }
};

BuildCommit build_commit();

}  // namespace gyre::tools
