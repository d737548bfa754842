// Headers of the CUDA toolkit in actors, without a GPU: where they are found, and that actors compile.
#include <fmt/format.h>
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>
#include <gyre_grouped_actors_sources.hpp>
#include <gyre_halves_actors_sources.hpp>
#include <gyre_matrices_actors_sources.hpp>
#include <gyre_neighbours_actors_sources.hpp>
#include <gyre_sorted_actors_sources.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/actors/grouped.hpp"
#include "support/actors/halves.hpp"
#include "support/actors/matrices.hpp"
#include "support/actors/neighbours.hpp"
#include "support/actors/sorted.hpp"
#include "support/catch.hpp"
#include "support/counters.hpp"
#include "support/skip.hpp"
#include "support/source_actors.hpp"
#include "support/temporary_folder.hpp"
#include "support/without_nvrtc.hpp"
#include "tools/gyre/cubin.hpp"

using namespace gyre;
using namespace gyre_toolkit;
using gyre_test::containing;
namespace fs = std::filesystem;

namespace {

ActorSet grouped() { return ActorSet::of<Grouped, Teamed>(gyre_grouped_actors::sources); }
ActorSet neighbours() { return ActorSet::of<Neighbours>(gyre_neighbours_actors::sources).grid_scoped(); }
ActorSet halves() { return ActorSet::of<Halves>(gyre_halves_actors::sources); }
ActorSet matrices() { return ActorSet::of<Matrices>(gyre_matrices_actors::sources); }
ActorSet sorted() { return ActorSet::of<Sorted>(gyre_sorted_actors::sources); }

bool without_headers() {
  if (gyre_test::without_nvrtc()) return true;
  if (!cuda::find_toolkit_headers(cuda::nvrtc_version().major).folders.empty()) return false;
  gyre_test::skip("the headers of the CUDA toolkit are not installed");
  return true;
}

// Returns the cubin.
std::string check_compiles(const ActorSet& actors, int architecture, uint32_t block) {
  INFO(fmt::format("{} for {}, block {}", actors.type_list(), architecture, block));
  const cuda::CompiledKernel kernel = cuda::compile(actors, architecture, block);
  CHECK(kernel.log == "");
  CHECK(kernel.cubin.substr(0, 4) == "\177ELF");
  const auto description =
      read_description(tools::cubin_variables(kernel.cubin).at(kernel.lowered_description));
  REQUIRE(description.size() == actors.description().size());
  for (size_t n = 0; n < description.size(); ++n) {
    CHECK(description[n].cuda_only == actors.description()[n].cuda_only);
    CHECK(gyre_test::types_of(description[n].types) == gyre_test::types_of(actors.description()[n].types));
  }
  return kernel.cubin;
}

bool has_option(const cuda::Program& program, std::string_view option) {
  return std::find(program.options.begin(), program.options.end(), option) != program.options.end();
}

std::string compile_error_of(const ActorSet& actors) {
  try {
    cuda::compile(actors, 90, 32);
  } catch (const Error& error) {
    return error.what();
  }
  return "it compiled";
}

// The counter from source, which begins with `includes`.
ActorSet counter_with(const std::string& includes, std::vector<SourceText> headers = {}) {
  const std::vector<SourceText> own = gyre_test::test_headers();
  headers.insert(headers.end(), own.begin(), own.end());
  return ActorSet::from_source(includes + gyre_test::counter_text, {"my::Counter", "my::Doubler"},
                               std::move(headers));
}

// A folder like a toolkit's, of CUDA `version` (13000: 13.0), whose cuda_fp16.h says what it is.
void make_toolkit(const fs::path& folder, int version) {
  fs::create_directories(folder / "include");
  gyre_test::write_file(folder / "include" / "cuda_runtime_api.h",
                        fmt::format("#define CUDART_VERSION  {}\n", version));
  gyre_test::write_file(folder / "include" / "cuda_fp16.h", "#define OF_THE_TEST 1\n");
}

std::string names_of(const std::vector<cuda::OutsideHeader>& headers) {
  std::string names;
  for (const auto& [name, leads] : headers) names += std::string(name) + (leads ? "+ " : " ");
  return names;
}

}  // namespace

TEST_CASE("actors that use cooperative groups compile, by a warp and by a block", "[toolkit]") {
  if (without_headers()) return;
  check_compiles(grouped(), 90, 32);
  check_compiles(grouped(), 90, 128);
}

TEST_CASE("a grid-scoped actor that includes cooperative groups has their barrier, and not Gyre's",
          "[toolkit]") {
  if (without_headers()) return;
  CHECK(check_compiles(neighbours(), 90, 128).find("grid_arrivals") == std::string::npos);
}

TEST_CASE("actors that use half numbers and tensor cores compile", "[toolkit]") {
  if (without_headers()) return;
  check_compiles(halves(), 90, 32);
  check_compiles(matrices(), 90, 64);
}

TEST_CASE("an actor that uses CUB and libcu++ compiles", "[toolkit]") {
  if (without_headers()) return;
  check_compiles(sorted(), 90, 128);
}

TEST_CASE("actors that include the toolkit compile for old and new architectures", "[.slow]") {
  if (without_headers()) return;
  for (const int architecture : {75, 80, 120}) {
    for (const ActorSet& actors : {grouped(), neighbours(), halves(), matrices(), sorted()}) {
      check_compiles(actors, architecture, 64);
    }
  }
}

TEST_CASE("actors that include nothing of the toolkit pay nothing for it") {
  const ActorSet actors = gyre_counters::counter_actors();
  const cuda::Program program = cuda::program_of(actors, 90, 32);
  CHECK(program.toolkit == "");
  CHECK(has_option(program, "--no-source-include"));
  CHECK(program.options.size() == 8);
  CHECK(program.text ==
        "#include <gyre/device/worker/kernel.hpp>\n#include <gyre/device/actor/description.hpp>\n"
        "#include <support/actors/counter.hpp>\n");
  CHECK(cuda::inputs_of(program, "13.0").find("\ntoolkit ") == std::string::npos);
}

TEST_CASE("actors that include the toolkit get its folders, and libcu++ only where they name it") {
  if (without_headers()) return;
  const cuda::ToolkitHeaders headers = cuda::find_toolkit_headers(cuda::nvrtc_version().major);
  const ActorSet groups = grouped(), sort = sorted();
  const cuda::Program program = cuda::program_of(groups, 90, 32), other = cuda::program_of(sort, 90, 32);
  for (const cuda::Program& each : {program, other}) {
    CHECK(each.toolkit == headers.version);
    CHECK_FALSE(has_option(each, "--no-source-include"));
    CHECK(has_option(each, "-DGYRE_CUDA_TOOLKIT"));
    for (const std::string& folder : headers.folders) CHECK(has_option(each, "-I" + folder));
  }
  CHECK(has_option(program, "-DGYRE_COOPERATIVE_GROUPS"));
  CHECK(has_option(program, "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"));
  CHECK_FALSE(has_option(other, "-DGYRE_COOPERATIVE_GROUPS"));
  CHECK(program.text.substr(0, program.text.find("#include <gyre/")) ==
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
        "#include <cooperative_groups/scan.h>\n#pragma nv_hdrstop\n");
  const ActorSet both = counter_with("#include <cooperative_groups.h>\n#include <cuda/atomic>\n");
  CHECK_FALSE(has_option(cuda::program_of(both, 90, 32), "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"));
}

TEST_CASE("the toolkit's version is among what a program's cubin depends on") {
  cuda::Program program;
  const std::string without = cuda::inputs_of(program, "13.0");
  program.toolkit = "CUDA 13.0, CCCL 3.0.1";
  const std::string with = cuda::inputs_of(program, "13.0");
  program.toolkit = "CUDA 13.0, CCCL 3.0.2";
  CHECK(with != without);
  CHECK(with != cuda::inputs_of(program, "13.0"));
}

TEST_CASE("headers are taken of the first toolkit that is of NVRTC's major version") {
  const gyre_test::TemporaryFolder folder;
  make_toolkit(folder.path() / "old", 11080);
  make_toolkit(folder.path() / "first", 99010);
  make_toolkit(folder.path() / "second", 99020);
  const std::string first = (folder.path() / "first").string(), second = (folder.path() / "second").string();
  fs::create_directories(folder.path() / "cccl" / "include" / "cuda" / "std" / "__cccl");
  gyre_test::write_file(folder.path() / "cccl" / "include" / "cuda" / "std" / "__cccl" / "version.h",
                        "#define CCCL_VERSION 3001002\n");
  const gyre_test::Environment home("CUDA_HOME", (folder.path() / "old").c_str());
  const gyre_test::Environment path("GYRE_CUDA_PATH",
                                    (second + "::" + (folder.path() / "cccl").string()).c_str());
  {
    const cuda::ToolkitHeaders found = cuda::find_toolkit_headers(99);
    CHECK(found.version == "CUDA 99.2, CCCL 3.1.2");
    CHECK(found.folders ==
          std::vector<std::string>{second + "/include", (folder.path() / "cccl" / "include")});
    CHECK(found.has("cuda_fp16.h"));
    CHECK(found.has("cuda/std/__cccl/version.h"));
    CHECK_FALSE(found.has("cuda"));
  }
  const gyre_test::Environment newer("CUDA_HOME", first.c_str());
  CHECK(cuda::find_toolkit_headers(99).version == "CUDA 99.1");
  CHECK(cuda::find_toolkit_headers(98).folders.empty());
}

TEST_CASE("where headers of the toolkit are missing, the error names each place and what to install") {
  if (gyre_test::without_nvrtc()) return;
  const gyre_test::TemporaryFolder folder;
  make_toolkit(folder.path() / "old", 11080);
  const gyre_test::Environment home("CUDA_HOME", (folder.path() / "old").c_str());
  const gyre_test::Environment path("GYRE_CUDA_PATH", nullptr);
  const std::string text = cuda::explain_toolkit_search(99);
  INFO(text);
  CHECK(
      text.find("Headers of the CUDA toolkit are those of CUDA 99 in the first of $CUDA_HOME (CUDA 11.8 in " +
                (folder.path() / "old" / "include").string() + "), /usr/local/cuda (") == 0);
  CHECK(text.find("$GYRE_CUDA_PATH (not set): none has them.") != std::string::npos);
  CHECK(text.find("cuda-cudart-dev, cuda-crt and cuda-cccl") != std::string::npos);

  const std::string error = compile_error_of(counter_with("#include <cuda_no_such_header.h>\n"));
  INFO(error);
  CHECK(error.find("could not open source file \"cuda_no_such_header.h\"") != std::string::npos);
  CHECK(error.find("actors_from_source.hpp:1: #include <cuda_no_such_header.h>") != std::string::npos);
  CHECK(error.find("\nHeaders of the CUDA toolkit are those of CUDA ") != std::string::npos);
}

TEST_CASE("ctx.group() without cooperative groups is refused, and the compiler says what to include") {
  if (gyre_test::without_nvrtc()) return;
  std::string text = gyre_test::counter_text;
  const std::string before = "out.setKey(ctx.key());";
  text.replace(text.find(before), before.size(), "ctx.group().sync();");
  CHECK_THAT(compile_error_of(gyre_test::counter_from_source(text)),
             containing("ctx.group() is cooperative groups': #include <cooperative_groups.h>"));
}

TEST_CASE("files in the current folder are not part of a program that includes the toolkit either") {
  if (without_headers()) return;
  gyre_test::write_file("gyre_stray_header_of_a_toolkit_test.hpp", "#define STRAY 1\n");
  for (const char* const name :
       {"\"gyre_stray_header_of_a_toolkit_test.hpp\"", "<gyre_stray_header_of_a_toolkit_test.hpp>"}) {
    CHECK_THAT(compile_error_of(counter_with(fmt::format("#include <cuda_fp16.h>\n#include {}\n", name))),
               containing("open source file"));
  }
  fs::remove("gyre_stray_header_of_a_toolkit_test.hpp");
}

TEST_CASE(
    "a process that compiles again with the toolkit's headers precompiles them, and says nothing of it") {
  if (without_headers()) return;
  const cuda::ToolkitHeaders headers = cuda::find_toolkit_headers(cuda::nvrtc_version().major);
  cuda::Program program{.text = "#include <cuda_fp16.h>\n#pragma nv_hdrstop\n__global__ void empty() {}\n",
                        .options = {"--gpu-architecture=sm_90"},
                        .kernel = "empty",
                        .architecture = 90,
                        .toolkit = headers.version};
  for (const std::string& folder : headers.folders) program.options.push_back("-I" + folder);
  for (int n = 0; n < 3; ++n) {
    const cuda::CompiledKernel kernel = cuda::compile(program);
    CHECK(kernel.log == "");
    CHECK(kernel.cubin.substr(0, 4) == "\177ELF");
  }
}

TEST_CASE("a kept program says which toolkit it needs", "[kept]") {
  if (without_headers()) return;
  const gyre_test::TemporaryFolder folder;
  cuda::compile(halves(), 90, 32, {.keep_program = folder.path().string()});
  const std::string options = gyre_test::read_file(folder.path() / "options.txt");
  INFO(options);
  CHECK(options.find("\n# needs headers of the CUDA toolkit: CUDA ") != std::string::npos);
  CHECK(options.find("\n-I") != std::string::npos);
  CHECK(gyre_test::read_file(folder.path() / "kernel.ptx").find("fma.rn.f16") != std::string::npos);
}

TEST_CASE("outside headers are those that NVRTC meets, whatever other compilers see") {
  const SourceFile files[] = {
      {"gyre/own.hpp", "#define OWN 1\n#if OWN\n#include <outside.h>\n#include <actor.hpp>\n#endif\n"},
      {"actor.hpp",
       "#pragma once\n"
       "// #include <commented.h>\n"
       "/* #include <commented.h>\n"
       "#include <commented.h>\n"
       "*/\n"
       "  #  include \"cooperative_groups.h\"  // with a comment\n"
       "#if !defined(__CUDACC_RTC__)\n"
       "#include <atomic>\n"
       "#if SOMETHING\n"
       "#include <chrono>\n"
       "#endif\n"
       "#else\n"
       "#include <mma.h>\n"
       "#endif\n"
       "#ifdef __CUDACC_RTC__\n"
       "#include <cub/block/block_scan.cuh>\n"
       "#elif defined(OTHER)\n"
       "#include <never.h>\n"
       "#endif\n"
       "#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)\n"
       "#include <cuda_runtime.h>\n"
       "#endif\n"
       "#include <helper.hpp>\n"
       "#include <cuda/std/array>\n"
       "#include <cuda_fp16.h>\n"},
      {"helper.hpp", "#include <thrust/pair.h>\n#define LIMIT 1\n#include <cuda_bf16.h>\n"}};
  CHECK(names_of(cuda::outside_headers("#include <gyre/own.hpp>\n", files)) ==
        "cooperative_groups.h+ mma.h+ cub/block/block_scan.cuh+ thrust/pair.h+ cuda_bf16.h cuda/std/array "
        "cuda_fp16.h ");
  CHECK(names_of(cuda::outside_headers("#if MAYBE\n#include <helper.hpp>\n#endif\n", files)) ==
        "thrust/pair.h cuda_bf16.h ");
  CHECK(cuda::outside_headers("", files).empty());
}

TEST_CASE("includes in quotes become includes in angles, of as many characters") {
  CHECK(cuda::with_angle_includes(
            "#include \"a.hpp\"\n # include\"b/c.hpp\" // d\nint x = '\"';\n#include <e>\n"
            "#include \"f.hpp\"") ==
        "#include <a.hpp>\n # include<b/c.hpp> // d\nint x = '\"';\n#include <e>\n#include <f.hpp>");
}
