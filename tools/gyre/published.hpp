// The runtimes of other processes that publish their stats, as gyre's subcommands name them.
#pragma once

#include <gyre/runtime/telemetry/stats_file.hpp>

#include <functional>
#include <string>

namespace gyre::tools {

/// Reads the stats that are published now, and calls `show(file, published)` for each of them. A file that
/// cannot be read is reported on standard error; where it is the one that was asked for, Error passes
/// through.
/// @param which  a process's number, or a file; empty: all
/// @returns      how many there are
size_t for_each_published(const std::string& which,
                          const std::function<void(const std::string&, const PublishedStats&)>& show);

/// Says on standard error that there is none.
void report_none_published(const std::string& which);

}  // namespace gyre::tools
