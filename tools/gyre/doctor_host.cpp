#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "doctor.hpp"

namespace gyre::tools {

namespace {

constexpr uint64_t mebibyte = uint64_t(1) << 20;

Finding check_processor() {
  const unsigned count = std::thread::hardware_concurrency();
  if (!__builtin_cpu_supports("avx")) {
    return {"processor", Health::bad, fmt::format("{} processors, without AVX", count),
            "without AVX there is no promise that a 16-byte store is one store: use an x86-64 processor of "
            "2011 or "
            "later"};
  }
  if (count < 2) {
    return {"processor", Health::warn, "1 processor, with AVX",
            "whoever waits for a reply shares it with everybody else: use two or more"};
  }
  return {"processor", Health::ok, fmt::format("{} processors, with AVX", count), ""};
}

Finding check_memory() {
  uint64_t total_kib = 0, available_kib = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    uint64_t value = 0;
    file >> value;
    std::getline(file, unit);
    if (key == "MemTotal:") total_kib = value;
    if (key == "MemAvailable:") available_kib = value;
  }
  if (total_kib == 0) return {"memory", Health::unknown, "/proc/meminfo cannot be read", ""};
  const uint64_t available = available_kib / 1024,
                 region = Options{}.region_layout(8).region_bytes() / mebibyte;
  const std::string found = fmt::format("{} MiB of {} MiB available", available, total_kib / 1024);
  if (available < 2 * region) {
    return {
        "memory", Health::warn, found,
        fmt::format("a region takes {} MiB with the default options: free memory, or use less --arena-bytes",
                    region)};
  }
  return {"memory", Health::ok, found, ""};
}

Finding check_locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {"locked memory", Health::ok, "unlimited", ""};
  return {"locked memory", limit.rlim_cur == 0 ? Health::warn : Health::ok,
          fmt::format("limited to {} KiB", uint64_t(limit.rlim_cur) / 1024),
          limit.rlim_cur == 0 ? "if pinned memory cannot be allocated, raise it (ulimit -l)" : ""};
}

Finding check_cache_folder() {
  const char* const own = std::getenv("GYRE_CACHE_DIR");
  const char* const xdg = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  namespace fs = std::filesystem;
  fs::path folder;
  if (own != nullptr && *own == '/') {
    folder = own;
  } else if (xdg != nullptr && *xdg == '/') {
    folder = fs::path(xdg) / "gyre";
  } else if (home != nullptr && *home == '/') {
    folder = fs::path(home) / ".cache" / "gyre";
  } else {
    return {"cached kernels", Health::warn,
            "none of GYRE_CACHE_DIR, XDG_CACHE_HOME and HOME is an absolute path",
            "set one, so that compiled kernels can be kept"};
  }
  const auto warn = [&folder](const std::string& what, const std::string& remedy) {
    return Finding{"cached kernels", Health::warn, fmt::format("{} {}", folder.string(), what), remedy};
  };
  struct stat info {};
  if (stat(folder.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return warn("is not a folder", "remove it");
    if (info.st_uid != geteuid()) return warn("belongs to another user", "remove it, or set GYRE_CACHE_DIR");
    if ((info.st_mode & 077) != 0) {
      return warn(fmt::format("has mode {:04o}: others could change kernels", unsigned(info.st_mode & 07777)),
                  fmt::format("chmod 700 {}", folder.string()));
    }
    if (access(folder.c_str(), W_OK | X_OK) != 0) return warn("cannot be written", "chmod 700 it");
    return {"cached kernels", Health::ok, folder.string(), ""};
  }
  fs::path parent = folder.parent_path();
  std::error_code ignored;
  while (!fs::exists(parent, ignored) && parent.has_relative_path()) parent = parent.parent_path();
  if (access(parent.c_str(), W_OK | X_OK) != 0) {
    return warn(fmt::format("cannot be made: {} cannot be written", parent.string()),
                "make it writable, or set XDG_CACHE_HOME");
  }
  return {"cached kernels", Health::ok, fmt::format("{} (will be made)", folder.string()), ""};
}

}  // namespace

std::string_view name(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warn:
      return "warn";
    case Health::bad:
      return "bad";
    case Health::unknown:
      return "?";
  }
  return "?";
}

Findings check_host() {
  return {check_processor(), check_memory(), check_locked_memory(), check_cache_folder()};
}

}  // namespace gyre::tools
