#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gyre/runtime/cuda/cubin_cache.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace gyre::cuda {

namespace {

constexpr std::string_view entry_suffix = ".gyre-cubin";
constexpr std::string_view unfinished_suffix = ".unfinished";
constexpr time_t unfinished_kept_s = 3600;  // a writer that takes longer has died

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// The front of a file; the parts follow in this order.
struct Header {
  static constexpr uint64_t expected_magic = 0x316e626375727947u;  // "Gyrucbn1": another form, another number
  uint64_t magic = expected_magic;
  std::array<uint64_t, 5> sizes{};  // bytes of inputs, cubin, two names, log
  uint64_t checksum = 0;            // FNV-1a of the sizes and all parts: no change of one byte keeps it
};

std::array<std::string_view, 5> parts_of(std::string_view inputs, const CompiledKernel& kernel) {
  return {inputs, kernel.cubin, kernel.lowered_name, kernel.lowered_description, kernel.log};
}

uint64_t checksum_of(const Header& header, std::string_view parts) {
  const std::string_view sizes(reinterpret_cast<const char*>(header.sizes.data()), sizeof header.sizes);
  return fnv1a(parts, fnv1a(sizes));
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(size_t(written));
  }
  return true;
}

bool read_all(int file, std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = read(file, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += size_t(count);
  }
  return true;
}

// Makes `folder` and what it lies in, for this user alone.
bool make_folders(const std::string& folder) {
  for (size_t end = 0; end != std::string::npos;) {
    end = folder.find('/', end + 1);
    if (mkdir(folder.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST && end == std::string::npos) {
      return false;
    }
  }
  return true;
}

bool ends_with(std::string_view name, std::string_view suffix) {
  return name.size() >= suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
}

}  // namespace

std::string CubinCache::default_folder() {
  const auto absolute = [](const char* name, const char* below) -> std::string {
    const char* const path = std::getenv(name);
    return path != nullptr && path[0] == '/' ? std::string(path) + below : std::string();
  };
  std::string folder = absolute("GYRE_CACHE_DIR", "");
  if (folder.empty()) folder = absolute("XDG_CACHE_HOME", "/gyre");
  if (folder.empty()) folder = absolute("HOME", "/.cache/gyre");
  return folder;
}

CubinCache::CubinCache(std::string folder, uint64_t bytes_kept)
    : folder_(std::move(folder)), bytes_kept_(bytes_kept) {
  if (folder_.empty()) {
    refusal_ = "none of $GYRE_CACHE_DIR, $XDG_CACHE_HOME and $HOME is an absolute path";
    return;
  }
  if (!make_folders(folder_)) {
    refusal_ = fmt::format("folder {} cannot be made: {}", folder_, std::strerror(errno));
    return;
  }
  directory_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat status {};
  if (directory_ < 0 || fstat(directory_, &status) != 0) {
    refusal_ = fmt::format("folder {} cannot be opened: {}", folder_, std::strerror(errno));
  } else if (status.st_uid != geteuid()) {
    refusal_ =
        fmt::format("folder {} belongs to user {}, and this is user {}; set $GYRE_CACHE_DIR to another",
                    folder_, status.st_uid, geteuid());
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refusal_ = fmt::format("others may write to folder {} (its mode is {:o}); chmod 700 it", folder_,
                           status.st_mode & 07777);
  }
}

CubinCache::~CubinCache() {
  if (directory_ >= 0) close(directory_);
}

std::string CubinCache::file_name(std::string_view inputs) {
  return fmt::format("{:016x}{}", fnv1a(inputs), entry_suffix);
}

std::optional<CompiledKernel> CubinCache::find(std::string_view inputs) const {
  if (!refusal_.empty()) return std::nullopt;
  const File file(openat(directory_, file_name(inputs).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file.open() || fstat(file.descriptor(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || uint64_t(status.st_size) > bytes_kept_ ||
      uint64_t(status.st_size) < sizeof(Header)) {
    return std::nullopt;
  }
  std::string bytes(size_t(status.st_size), '\0');
  if (!read_all(file.descriptor(), bytes)) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::string_view rest = bytes;
  rest.remove_prefix(sizeof header);
  if (header.magic != Header::expected_magic || header.checksum != checksum_of(header, rest)) {
    return std::nullopt;
  }
  std::array<std::string_view, 5> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (header.sizes[i] > rest.size()) return std::nullopt;
    parts[i] = rest.substr(0, header.sizes[i]);
    rest.remove_prefix(parts[i].size());
  }
  if (!rest.empty() || parts[0] != inputs) return std::nullopt;
  (void)futimens(file.descriptor(), nullptr);  // used now: the last to be removed
  CompiledKernel kernel;
  kernel.cubin = parts[1];
  kernel.lowered_name = parts[2];
  kernel.lowered_description = parts[3];
  kernel.log = parts[4];
  kernel.from_cache = true;
  return kernel;
}

std::string CubinCache::store(std::string_view inputs, const CompiledKernel& kernel) const {
  if (!refusal_.empty()) return refusal_;
  Header header;
  std::string bytes(sizeof header, '\0');
  const auto parts = parts_of(inputs, kernel);
  for (size_t i = 0; i < parts.size(); ++i) {
    header.sizes[i] = parts[i].size();
    bytes += parts[i];
  }
  header.checksum = checksum_of(header, std::string_view(bytes).substr(sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
  if (bytes.size() > bytes_kept_) {
    return fmt::format("the program takes {} bytes, and all of the cache may take {}", bytes.size(),
                       bytes_kept_);
  }

  static std::atomic<uint64_t> writers{0};
  const std::string name = file_name(inputs);
  const std::string unfinished = fmt::format("{}-{}-{}{}", name, getpid(), ++writers, unfinished_suffix);
  const auto failed = [&](std::string_view doing) {
    const std::string why = std::strerror(errno);
    unlinkat(directory_, unfinished.c_str(), 0);
    return fmt::format("{} {}/{}: {}", doing, folder_, name, why);
  };
  {
    const File file(
        openat(directory_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.open() || !write_all(file.descriptor(), bytes)) return failed("writing");
  }
  if (renameat(directory_, unfinished.c_str(), directory_, name.c_str()) != 0) return failed("naming");
  make_room();
  return {};
}

// Removes the files that were not used for longest, until the rest are few enough, and what dead writers
// left. Only files with names of this cache's own.
void CubinCache::make_room() const {
  struct Entry {
    timespec used;
    uint64_t bytes;
    std::string name;
  };
  DIR* const listing = fdopendir(openat(directory_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (listing == nullptr) return;
  std::vector<Entry> entries;
  uint64_t total = 0;
  while (const dirent* const found = readdir(listing)) {
    const std::string_view name = found->d_name;
    const bool unfinished = ends_with(name, unfinished_suffix) && name.find(entry_suffix) == 16;
    if (!unfinished && !(ends_with(name, entry_suffix) && name.size() == 16 + entry_suffix.size())) continue;
    struct stat status {};
    if (fstatat(directory_, found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    if (unfinished && time(nullptr) - status.st_mtime > unfinished_kept_s) {
      unlinkat(directory_, found->d_name, 0);
    } else if (!unfinished) {
      entries.push_back({status.st_mtim, uint64_t(status.st_size), std::string(name)});
      total += entries.back().bytes;
    }
  }
  closedir(listing);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (total <= bytes_kept_) return;
    if (unlinkat(directory_, entry.name.c_str(), 0) == 0) total -= entry.bytes;
  }
}

}  // namespace gyre::cuda
