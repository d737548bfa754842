#include "build_commit.hpp"

#include "build_commit_value.hpp"  // written by cmake/write_build_commit.cmake at each build

namespace gyre::tools {

BuildCommit build_commit() { return {GYRE_BUILD_COMMIT, GYRE_BUILD_DIRTY}; }

}  // namespace gyre::tools
