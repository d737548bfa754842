// The main function of the GPU tests: skipped (exit 77) where there is no GPU.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif
#include <gyre/bridge/cuda/driver.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (gyre::cuda::Driver::device_count() == 0) {
    std::puts("skipped: no CUDA device here");
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
