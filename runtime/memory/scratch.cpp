#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/elements.hpp>

namespace gyre::detail {

constinit thread_local PerThread<Scratch> scratch_of_this_thread;

void refuse_elements(const char* doing, size_t list, size_t span) {
  throw Error(fmt::format("{} the elements of a list: the list has {}, and the span {}; give them one length",
                          doing, list, span));
}

void copy_elements(void* to, const void* from, size_t bytes) {
  if (bytes < CopyThreads::worth_helping) {
    std::memcpy(to, from, bytes);
  } else {
    CopyThreads::shared()->copy(to, from, bytes);
  }
}

}  // namespace gyre::detail
