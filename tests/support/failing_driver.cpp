#include "support/failing_driver.hpp"

#include <mutex>
#include <thread>

namespace gyre_test {

using gyre::cuda::Driver;

namespace {

// Functions of a plain table have no state of their own.
struct State {
  std::mutex mutex;
  Driver inner;
  size_t fail_at = 0;
  CUresult code = CUDA_SUCCESS;
  std::vector<std::string> calls;
  std::string failed;
  std::thread::id failed_on;

  // True if this call is the one to fail.
  bool begin(const char* function) {
    const std::lock_guard lock(mutex);
    calls.emplace_back(function);
    if (calls.size() != fail_at) return false;
    failed = function;
    failed_on = std::this_thread::get_id();
    return true;
  }
};
State& state() {
  static State state;
  return state;
}

// `Name` tells apart members of one type.
template <auto Member, const char* Name>
struct Wrapped;
template <class... Arguments, CUresult (*Driver::*Member)(Arguments...), const char* Name>
struct Wrapped<Member, Name> {
  static CUresult call(Arguments... arguments) {
    if (state().begin(Name)) return state().code;
    return (state().inner.*Member)(arguments...);
  }
};

Driver wrap(const Driver& inner) {
  state().inner = inner;
  Driver driver;
#define GYRE_WRAP(name, ...)                                                     \
  {                                                                              \
    static constexpr char text[] = #name;                                        \
    if (inner.name != nullptr) driver.name = Wrapped<&Driver::name, text>::call; \
  }
  GYRE_CUDA_FUNCTIONS(GYRE_WRAP)
  GYRE_CUDA_OPTIONAL_FUNCTIONS(GYRE_WRAP)
  GYRE_WRAP(advise)
#undef GYRE_WRAP
  return driver;
}

}  // namespace

FailingDriver::FailingDriver() {
  wrapped_ = Driver::replace_loader({});
  fail(0, CUDA_SUCCESS);
  Driver::replace_loader([inner = wrapped_] { return wrap(inner ? inner() : Driver::load_library()); });
}

FailingDriver::~FailingDriver() { Driver::replace_loader(wrapped_); }

void FailingDriver::fail(size_t n, CUresult code) {
  const std::lock_guard lock(state().mutex);
  state().fail_at = n;
  state().code = code;
  state().calls.clear();
  state().failed.clear();
  state().failed_on = {};
}

std::vector<std::string> FailingDriver::calls() const {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

std::string FailingDriver::failed() const {
  const std::lock_guard lock(state().mutex);
  return state().failed;
}

bool FailingDriver::failed_on_this_thread() const {
  const std::lock_guard lock(state().mutex);
  return state().failed_on == std::this_thread::get_id();
}

}  // namespace gyre_test
