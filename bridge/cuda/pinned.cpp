#include <sys/mman.h>
#include <gyre/bridge/cuda/pinned.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace gyre::cuda {

namespace {

constexpr unsigned int everywhere = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
static_assert(everywhere == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
constexpr size_t huge_page = size_t(2) << 20;
constexpr size_t page = 4096;

struct Unmap {
  size_t bytes = 0;
  void operator()(char* pages) const { munmap(pages, bytes); }
};
using Pages = std::unique_ptr<char, Unmap>;

// Zeroed pages of the process's own, none where there are none. A forked child has none of them: what the GPU
// writes must not come to lie in a copy.
Pages map_pages(size_t bytes) {
  char* const mapped = static_cast<char*>(
      mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (mapped == MAP_FAILED) return {};
  const size_t before = (huge_page - reinterpret_cast<uintptr_t>(mapped) % huge_page) % huge_page;
  if (before != 0) munmap(mapped, before);
  munmap(mapped + before + bytes, huge_page - before);
  Pages pages(mapped + before, Unmap{bytes});
  if (madvise(pages.get(), bytes, MADV_WIPEONFORK) != 0) return {};
  (void)madvise(pages.get(), bytes, MADV_HUGEPAGE);  // where the system has them
  return pages;
}

// The kernel zeroes a page when it is first touched: most of what a region takes.
void touch_pages(char* pages, size_t bytes) {
  constexpr size_t bytes_a_thread = size_t(16) << 20;
  const auto touch = [pages, bytes](size_t from) {
    const size_t to = std::min(bytes, from + bytes_a_thread);
    for (size_t at = from; at < to; at += page) *const_cast<volatile char*>(pages + at) = 0;
  };
  std::vector<std::thread> others;
  size_t from = bytes_a_thread;
  try {
    others.reserve(bytes / bytes_a_thread + 1);
    for (; from < bytes; from += bytes_a_thread) others.emplace_back(touch, from);
  } catch (const std::exception&) {  // no more threads, or no memory for them: this one does the rest
    for (; from < bytes; from += bytes_a_thread) touch(from);
  }
  touch(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

PinnedRegion::PinnedRegion(const Context& context, size_t bytes, size_t zeroed_bytes) : context_(context) {
  const Driver& driver = context.driver();
  const Context::Current current(context);
  try {
    if (!lock_own_pages(bytes)) let_driver_allocate(bytes, zeroed_bytes);
    driver.check(driver.cuMemHostGetDevicePointer(&device_, host_, 0), "mapping the region's pinned memory");
  } catch (...) {
    free();
    throw;
  }
}

PinnedRegion::~PinnedRegion() { free(); }

// False where the region is too large for that, or the system or the driver will not: the driver's own
// memory then decides whether there is room.
bool PinnedRegion::lock_own_pages(size_t bytes) {
  const size_t whole_pages = (bytes + page - 1) / page * page;
  if (whole_pages > own_pages_up_to) return false;
  Pages pages = map_pages(whole_pages);
  if (pages == nullptr) return false;
  touch_pages(pages.get(), whole_pages);
  if (context_.driver().cuMemHostRegister(pages.get(), whole_pages, everywhere) != CUDA_SUCCESS) return false;
  host_ = pages.release();
  own_bytes_ = whole_pages;
  return true;
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
  if (own_bytes_ == 0) {
    context_.driver().cuMemFreeHost(host_);
    return;
  }
  context_.driver().cuMemHostUnregister(host_);
  munmap(host_, own_bytes_);
}

}  // namespace gyre::cuda
