#include <sys/mman.h>
#include <gyre/bridge/cuda/pinned.hpp>

#include <cstring>
#include <string>
#include <utility>

namespace gyre::cuda {

namespace {

constexpr unsigned int everywhere = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
static_assert(everywhere == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
constexpr size_t huge_page = size_t(2) << 20;
constexpr size_t page = 4096;

constexpr size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

void OwnPages::Unmap::operator()(char* pages) const { munmap(pages, bytes); }

// A forked child has none of them: what the GPU writes must not come to lie in a copy.
OwnPages::OwnPages(size_t bytes, size_t room) {
  if (room > most_bytes) return;
  room = whole_pages(room);
  char* const mapped = static_cast<char*>(
      mmap(nullptr, room + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (mapped == MAP_FAILED) return;
  const size_t before = (huge_page - reinterpret_cast<uintptr_t>(mapped) % huge_page) % huge_page;
  if (before != 0) munmap(mapped, before);
  munmap(mapped + before + room, huge_page - before);
  std::unique_ptr<char, Unmap> pages(mapped + before, Unmap{room});
  if (madvise(pages.get(), room, MADV_WIPEONFORK) != 0) return;
  (void)madvise(pages.get(), room, MADV_HUGEPAGE);  // where the system has them
  for (size_t at = 0; at < bytes; at += page) *const_cast<volatile char*>(pages.get() + at) = 0;
  pages_ = std::move(pages);
}

void* OwnPages::take(size_t bytes) {
  if (bytes != room()) munmap(pages_.get() + bytes, room() - bytes);
  return pages_.release();
}

PinnedRegion::PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes, OwnPages pages)
    : context_(context) {
  const Driver& driver = context.driver();
  const Context::Current current(context);
  try {
    if (!lock_own_pages(bytes, std::move(pages))) let_driver_allocate(bytes, zeroed_bytes);
    driver.check(driver.cuMemHostGetDevicePointer(&device_, host_, 0), "mapping the region's pinned memory");
  } catch (...) {
    free();
    throw;
  }
}

CUdeviceptr lock_shared(const Driver& driver, const SharedMemory& memory, const char* what) {
  driver.check(driver.cuMemHostRegister(memory.address(), memory.bytes(), everywhere),
               "locking " + std::to_string(memory.bytes()) + " bytes of shared memory for " + what);
  CUdeviceptr device = 0;
  driver.check(driver.cuMemHostGetDevicePointer(&device, memory.address(), 0),
               std::string("mapping the shared memory of ") + what);
  return device;
}

PinnedRegion::PinnedRegion(const Context& context, SharedMemory memory)
    : context_(context), shared_(std::move(memory)) {
  const Context::Current current(context);
  device_ = lock_shared(context.driver(), shared_, "the region");
  host_ = shared_.address();
}

PinnedRegion::~PinnedRegion() {
  if (host_ == nullptr) shared_.leak();
  free();
}

// False where the region is too large for that, or the system or the driver will not: the driver's own
// memory then decides whether there is room.
bool PinnedRegion::lock_own_pages(size_t bytes, OwnPages pages) {
  const size_t wanted = whole_pages(bytes);
  if (pages.room() < wanted) pages = OwnPages(wanted, wanted);
  if (pages.room() < wanted) return false;
  host_ = pages.take(wanted);
  own_bytes_ = wanted;
  if (context_.driver().cuMemHostRegister(host_, own_bytes_, everywhere) == CUDA_SUCCESS) return true;
  munmap(host_, own_bytes_);
  host_ = nullptr;
  own_bytes_ = 0;
  return false;
}

void PinnedRegion::let_driver_allocate(size_t bytes, size_t zeroed_bytes) {
  const Driver& driver = context_.driver();
  driver.check(driver.cuMemHostAlloc(&host_, bytes, everywhere),
               "allocating " + std::to_string(bytes) + " bytes of pinned memory for the region");
  std::memset(host_, 0, zeroed_bytes);
}

// Where the context is dead the calls fail, and the driver's part of it is gone already.
void PinnedRegion::free() noexcept {
  if (host_ == nullptr) return;
  const Context::Current current(context_, std::nothrow);
  if (own_bytes_ == 0 && !shared_) {
    context_.driver().check_or_log(context_.driver().cuMemFreeHost(host_),
                                   "freeing the region's pinned memory (cuMemFreeHost)");
    return;
  }
  context_.driver().check_or_log(context_.driver().cuMemHostUnregister(host_),
                                 "unlocking the region's memory (cuMemHostUnregister)");
  if (own_bytes_ != 0) munmap(host_, own_bytes_);
}

}  // namespace gyre::cuda
