#include "published.hpp"

#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>

#include <filesystem>
#include <iostream>
#include <vector>

#include "common_options.hpp"

namespace gyre::tools {

namespace {

std::vector<std::string> published_files(const std::string& which) {
  if (!which.empty() && !is_number(which)) return {which};
  std::vector<std::string> files;
  for (const std::string& file : stats_files()) {
    const std::string name = std::filesystem::path(file).filename();
    if (which.empty() || name.rfind(which + "-", 0) == 0) files.push_back(file);
  }
  return files;
}

}  // namespace

size_t for_each_published(const std::string& which,
                          const std::function<void(const std::string&, const PublishedStats&)>& show) {
  size_t shown = 0;
  for (const std::string& file : published_files(which)) {
    PublishedStats published;
    try {
      published = read_stats_file(file);
    } catch (const Error& error) {
      if (which == file) throw;
      std::cerr << "gyre: " << error.what() << "\n";  // one of several: perhaps it has just ended
      continue;
    }
    ++shown;
    show(file, published);
  }
  return shown;
}

void report_none_published(const std::string& which) {
  std::cerr << fmt::format(
      "gyre: no runtime publishes its stats in {}{}; launch it with Options::publish_stats, or --stats\n",
      stats_folder(), which.empty() ? "" : " for process " + which);
}

}  // namespace gyre::tools
