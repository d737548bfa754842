#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/bridge/shared_memory.hpp>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace gyre {

namespace {

constexpr size_t page = 4096;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

std::string because() { return std::generic_category().message(errno); }

}  // namespace

SharedMemory::SharedMemory(const char* name, size_t bytes, size_t touched) {
  bytes = whole_pages(std::max<size_t>(bytes, 1));
  file_ = Descriptor(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_) {
    throw Error("making shared memory (memfd_create): " + because() +
                "; close descriptors, or raise their limit (ulimit -n)");
  }
  if (ftruncate(file_.get(), off_t(bytes)) != 0 || fcntl(file_.get(), F_ADD_SEALS, seals) != 0) {
    throw Error("making shared memory of " + std::to_string(bytes) + " bytes: " + because() +
                "; ask for less, or raise the memory limit");
  }
  map(bytes, "making");
  // Where the kernel has no such advice (before Linux 5.14), or no memory, the first accesses say so.
  (void)madvise(address_, std::min(whole_pages(touched), bytes), MADV_POPULATE_WRITE);
}

SharedMemory::SharedMemory(Descriptor file, size_t bytes) : file_(std::move(file)) {
  bytes = whole_pages(std::max<size_t>(bytes, 1));
  struct stat found {};
  if (fstat(file_.get(), &found) != 0 || size_t(found.st_size) < bytes ||
      (fcntl(file_.get(), F_GET_SEALS) & seals) != seals) {
    throw Error("mapping shared memory of " + std::to_string(bytes) + " bytes: the descriptor is of " +
                std::to_string(found.st_size) +
                " bytes or may be resized; both sides must come from the same Gyre");
  }
  map(bytes, "mapping");
}

void SharedMemory::map(size_t bytes, const char* doing) {
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) {
    throw Error(std::string(doing) + " shared memory of " + std::to_string(bytes) + " bytes: " + because() +
                "; ask for less, or raise the memory limit");
  }
  fork_ = ForkGuard();
  address_ = mapped;
  bytes_ = bytes;
  // A child's stores would be messages of its parent.
  if (madvise(mapped, bytes, MADV_DONTFORK) != 0) {
    throw Error(std::string(doing) + " shared memory: a child of fork() would have it too: " + because() +
                "; see what limits memory (ulimit -v)");
  }
}

// In a child of fork() something else may lie there.
void SharedMemory::unmap() noexcept {
  if (address_ != nullptr && !fork_.forked()) munmap(address_, bytes_);
  address_ = nullptr;
}

}  // namespace gyre
