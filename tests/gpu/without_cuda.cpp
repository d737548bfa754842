// Stands for the GPU tests in a build without the CUDA engine: skipped, and counted as skipped.
#include <cstdio>

int main() {
  std::puts("skipped: this build has no CUDA engine (no CUDA toolkit was found)");
  return 77;
}
