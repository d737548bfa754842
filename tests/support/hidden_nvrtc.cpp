// For programs linked with -Wl,--wrap=dlopen: a machine without NVRTC, while GYRE_TEST_WITHOUT_NVRTC is in
// the environment.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

extern "C" void* __real_dlopen(const char* file, int flags);
extern "C" void* __wrap_dlopen(const char* file, int flags);

extern "C" void* __wrap_dlopen(const char* file, int flags) {
  if (file != nullptr && std::strstr(file, "libnvrtc") != nullptr &&
      std::getenv("GYRE_TEST_WITHOUT_NVRTC") != nullptr)
    return nullptr;
  return __real_dlopen(file, flags);
}
