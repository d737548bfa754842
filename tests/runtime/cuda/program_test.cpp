// NVRTC without a GPU: the actors compile for every architecture Gyre supports.
#include <gyre/bridge/error.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre_mirror_actors_sources.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

#include "support/abacus.hpp"
#include "support/actors/mirror.hpp"
#include "support/catch.hpp"
#include "support/stepped.hpp"

using namespace gyre;

TEST_CASE("the built-in actors and the tests' own compile for every architecture from Turing to Blackwell") {
  if (!cuda::nvrtc_available()) {
    WARN("NVRTC is not installed: not compiled");
    return;
  }
  for (const int architecture : {75, 80, 86, 89, 90, 100, 120}) {
    const cuda::CompiledKernel kernel = cuda::compile(builtin_actors(), architecture, 32);
    INFO(kernel.log);
    CHECK(kernel.log.empty());
    CHECK(kernel.cubin.substr(0, 4) == "\177ELF");
    CHECK(kernel.lowered_name.find("worker_kernel") != std::string::npos);
    CHECK(kernel.cubin.find(kernel.lowered_name) != std::string::npos);
  }
  CHECK(cuda::compile(gyre_test::probe_actors(), 90, 256).log.empty());
}

TEST_CASE("an actor whose messages have every kind of field compiles") {
  if (!cuda::nvrtc_available()) return;
  const auto mirror = ActorSet::of<gyre_test::Mirror>(gyre_mirror_actors::sources);
  const cuda::CompiledKernel kernel = cuda::compile(mirror, 90, 64);
  INFO(kernel.log);
  CHECK(kernel.log.empty());
  CHECK(kernel.cubin.substr(0, 4) == "\177ELF");
}

TEST_CASE("an actor that uses buffers compiles") {
  if (!cuda::nvrtc_available()) return;
  for (const uint32_t block : {32u, 96u}) {
    const cuda::CompiledKernel kernel = cuda::compile(gyre_test::abacus_actors(), 90, block);
    INFO(kernel.log);
    CHECK(kernel.log.empty());
    CHECK(kernel.cubin.substr(0, 4) == "\177ELF");
  }
}

TEST_CASE("a kernel that does not compile is an error with the compiler's own lines") {
  if (!cuda::nvrtc_available()) return;
  try {
    cuda::compile_text("__global__ void broken(int* p) { *p = undeclared; }", "broken", 90,
                       {"--gpu-architecture=sm_90"}, {});
    FAIL("it compiled");
  } catch (const Error& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(text.find("broken") != std::string::npos);
    CHECK(text.find("9.0") != std::string::npos);
    CHECK(text.find("identifier \"undeclared\" is undefined") != std::string::npos);
    CHECK(text.find("gyre_kernel.cu(1)") != std::string::npos);
  }
}

TEST_CASE("a signal that comes while NVRTC compiles reaches the program's own handler") {
  if (!cuda::nvrtc_available()) return;
  static std::atomic<int> caught{0};
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { ++caught; };
  sigaction(SIGINT, &action, &before);
  std::atomic<bool> compiled{false};
  const pthread_t compiler = pthread_self();
  std::thread sender([&] {
    while (!compiled) {
      pthread_kill(compiler, SIGINT);
      std::this_thread::yield();
    }
  });
  CHECK_FALSE(cuda::compile(builtin_actors(), 90, 32).cubin.empty());
  compiled = true;
  sender.join();
  sigaction(SIGINT, &before, nullptr);
  CHECK(caught > 0);
}

TEST_CASE("the program pins floating point and includes every actor header") {
  const cuda::Program program = cuda::program_of(builtin_actors(), 90, 64);
  CHECK(program.text.find("#include <gyre/device/actors/echo.hpp>") != std::string::npos);
  CHECK(program.text.find("#include <gyre/device/actors/vector_add.hpp>") != std::string::npos);
  for (const char* const option : {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
                                   "--gpu-architecture=sm_90", "-DGYRE_BLOCK=64"}) {
    CHECK(std::count(program.options.begin(), program.options.end(), option) == 1);
  }
}

TEST_CASE("without a GPU the CUDA engine says what is missing, and nothing falls back in silence") {
  if (cuda::Driver::device_count() > 0) return;
  try {
    Runtime::launch(builtin_actors(), {.engine = EngineKind::cuda});
    FAIL("it launched");
  } catch (const EngineUnavailable& error) {
    CHECK(std::string(error.what()).find("CUDA") != std::string::npos);
    CHECK(std::string(error.what()).find("--engine cpu") != std::string::npos);
  }
  CHECK(Runtime::launch(builtin_actors(), {.engine = EngineKind::automatic}).engine() == EngineKind::cpu);
}
