// What gyre inspect reads: cubins, PTX, the assembler's report; and the occupancy that it works out.
#include <gyre/bridge/errors/error.hpp>
#include <gyre/runtime/builtin_actors.hpp>
#include <gyre/runtime/cuda/program.hpp>

#include "actor_file.hpp"
#include "inspection.hpp"
#include "programs.hpp"
#include "support/catch.hpp"
#include "support/without_nvrtc.hpp"

using namespace gyre;
using namespace gyre::tools;
using gyre_test::containing;

namespace {

// A kernel with something of everything, and a window of so many numbers on its stack.
std::string kernel_with(const std::string& window) {
  return "constexpr int window_size = " + window + R"(;
__constant__ const int table[4] = {1, 2, 3, 4};
struct Worker {
  __device__ __noinline__ void on(int step, float* values) {
    float window[window_size];
    for (int i = 0; i < window_size; ++i) window[i] = values[i];
    for (int i = 0; i < window_size; ++i) values[i] = window[i * step % window_size];
  }
};
template <class T>
__global__ void kernel(float* values, int n) {
  __shared__ float kept[100];
  kept[threadIdx.x % 100] = values[threadIdx.x];
  __syncthreads();
  T worker;
  worker.on(n, values);
  values[n] = kept[n] + table[n & 3];
}
)";
}
const std::string kernel_text = kernel_with("200");

cuda::Program program(const std::string& text) {
  cuda::Program program;
  program.text = text;
  program.options = {"--gpu-architecture=sm_90", "--std=c++20", "--ptxas-options=-v", "-DGYRE_BLOCK=128"};
  program.kernel = "kernel<Worker>";
  program.architecture = 90;
  return program;
}

Inspection inspect(const std::string& text) {
  const TemporaryFolder folder;
  cuda::compile(program(text), {.cache = false, .keep_program = folder.path()});
  return read_inspection(folder.path());
}

}  // namespace

TEST_CASE("a cubin tells registers, stack, code, constants and functions, as the assembler reports them") {
  if (gyre_test::without_nvrtc()) return;
  const Inspection it = inspect(kernel_text);
  CHECK(it.architecture == 90);
  CHECK(it.block == 128);
  CHECK(it.kernel == "kernel<Worker>");
  REQUIRE(it.report);
  CHECK(it.cubin.registers == it.report->registers);
  CHECK(it.cubin.registers > 8);
  CHECK(it.cubin.frame_bytes == 800);
  CHECK(it.report->total().stack_bytes == 800);
  CHECK(it.report->static_shared_bytes == 400);
  CHECK(it.report->barriers == 1);
  CHECK(it.cubin.constant_bytes >= 16);
  CHECK(it.cubin.parameter_bytes > 12);
  REQUIRE(it.cubin.functions.size() >= 1);
  uint64_t in_functions = 0;
  bool found = false;
  for (const CubinFunction& function : it.cubin.functions) {
    in_functions += function.code_bytes;
    found = found || demangled(function.name) == "Worker::on(int, float*)";
  }
  CHECK(found);
  CHECK(in_functions < it.cubin.code_bytes);
  CHECK_THAT(functions_text(it), containing("actor Worker") && containing("Worker::on(int, float*)"));
}

TEST_CASE("a variable of a cubin is read with its content") {
  if (gyre_test::without_nvrtc()) return;
  const cuda::CompiledKernel compiled = cuda::compile(program(kernel_text));
  std::span<const std::byte> table;
  for (const auto& [name, content] : cubin_variables(compiled.cubin)) {
    if (name.find("table") != std::string::npos) table = content;
  }
  REQUIRE(table.size() == 16);
  for (size_t n = 0; n < 4; ++n) CHECK(table[4 * n] == std::byte(n + 1));
}

TEST_CASE("a cubin that is cut off, or of another kernel, is refused and never read past its end") {
  CHECK_THROWS_AS(read_cubin("", "kernel"), Error);
  CHECK_THROWS_AS(read_cubin(std::string(64, 'x'), "kernel"), Error);
  if (gyre_test::without_nvrtc()) return;
  const cuda::CompiledKernel compiled = cuda::compile(program(kernel_text));
  CHECK_THROWS_WITH(read_cubin(compiled.cubin, "another"), containing("no kernel another"));
  for (size_t size = 0; size < compiled.cubin.size(); size += 97) {
    // Copied, so that a sanitizer sees a read past the end.
    const std::vector<char> part(compiled.cubin.begin(), compiled.cubin.begin() + std::ptrdiff_t(size));
    try {
      cubin_variables({part.data(), part.size()});
      read_cubin({part.data(), part.size()}, compiled.lowered_name);
    } catch (const Error&) {
      continue;  // what lies at the end may not be needed
    }
  }
}

TEST_CASE("built-in actors are inspected with their states and handlers") {
  if (gyre_test::without_nvrtc()) return;
  const TemporaryFolder folder;
  compile_into(builtin_actors(), 80, 64, folder.path());
  const Inspection it = read_inspection(folder.path());
  const ActorSet actors = builtin_actors();
  REQUIRE(it.actors.size() == actors.description().size());
  for (size_t n = 0; n < it.actors.size(); ++n) {
    CHECK(it.actors[n].state_bytes == actors.description()[n].state_bytes);
    CHECK(it.actors[n].types.size() == actors.description()[n].types.size());
    CHECK(it.actor_types[n] == actors.actor_name(uint16_t(n)));
  }
  CHECK(it.architecture == 80);
  CHECK(it.block == 64);
  REQUIRE(it.functions.size() >= 1);
  size_t entries = 0;
  for (const PtxFunction& function : it.functions) entries += function.entry;
  CHECK(entries == 1);
}

TEST_CASE("a folder without a compiled program is refused by the file that it lacks") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_inspection(folder.path()), containing("it has no kernel.ptx"));
}

TEST_CASE("two versions are told apart by numbers, functions and instructions; the same are the same") {
  if (gyre_test::without_nvrtc()) return;
  const Inspection before = inspect(kernel_text), after = inspect(kernel_with("20"));
  const Json same = difference_json(before, before), found = difference_json(before, after);
  CHECK(same["changed"].empty());
  CHECK(same["added"].empty());
  CHECK(same["removed"].empty());
  CHECK(same["same"] == before.functions.size());
  bool on_changed = false;
  for (const Json& name : found["changed"].elements()) {
    on_changed = on_changed || name.as_string().starts_with("Worker::on(int, float*)");
  }
  CHECK(on_changed);
  CHECK_THAT(difference_text(before, after), containing("800           80  -720"));
  CHECK_THAT(difference_text(before, after), containing("~ Worker::on(int, float*)"));
}

TEST_CASE("PTX is taken apart into functions, and its instructions into classes") {
  const auto functions = parse_ptx(R"(
.version 9.0
.target sm_90
.func _ZN1A2onE1RPf
(
	.param .align 4 .b8 p0[4]
)
;
.const .align 4 .b8 tab[16] = {1, 0, 0, 0};
.func  (.param .b32 func_retval0) _Z7dividedff(
	.param .b32 p1
)
{
	.reg .f32 	%f<4>;

	ld.param.f32 	%f1, [p1];
	div.rn.f32 	%f3, %f1, %f2;
	@%p1 bra 	$L1;
$L1:
	ret;
}
	// .globl	k
.visible .entry k(
	.param .u64 k_param_0
)
.maxntid 256, 1, 1
{
	.local .align 16 .b8 	depot[800];
	st.local.f32 	[%rd1], %f1;
	ld.global.f32 	%f1, [%rd4];
	{ // callseq 0, 0
	.param .b32 param0;
	st.param.b32 	[param0+0], %r1;
	call.uni (retval0),
	_Z7dividedff,
	(
	param0,
	param1
	);
	} // callseq 0
	// begin inline asm
	fence.acq_rel.sys;
	// end inline asm
	atom.shared.cas.b32 	%r1, [%rd1], %r2, %r3;
	bar.sync 	0;
	add.s64 	%rd1, %rd2, %rd3;
	ret;
}
)");
  REQUIRE(functions.size() == 2);
  CHECK(functions[0].name == "_Z7dividedff");
  CHECK_FALSE(functions[0].entry);
  CHECK(functions[0].instructions == 4);
  CHECK(functions[1].name == "k");
  CHECK(functions[1].entry);
  CHECK(functions[1].instructions == 9);
  const auto count = [&](OpcodeClass kind) { return total(functions)[size_t(kind)]; };
  CHECK(count(OpcodeClass::parameter) == 2);
  CHECK(count(OpcodeClass::floating) == 1);
  CHECK(count(OpcodeClass::branch) == 3);
  CHECK(count(OpcodeClass::local) == 1);
  CHECK(count(OpcodeClass::global) == 1);
  CHECK(count(OpcodeClass::call) == 1);
  CHECK(count(OpcodeClass::atomic) == 1);
  CHECK(count(OpcodeClass::barrier) == 2);
  CHECK(count(OpcodeClass::integer) == 1);
  CHECK(count(OpcodeClass::other) == 0);
}

TEST_CASE("the assembler's report is read from a log, and of a log without one there is none") {
  const auto report = read_ptxas_report(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     800 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 2 barriers, 800 bytes cumulative stack size, 400 bytes smem\n"
      "ptxas info    : Function properties for _Z7dividedff\n"
      "    8 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads\n");
  REQUIRE(report);
  CHECK(report->registers == 40);
  CHECK(report->barriers == 2);
  CHECK(report->static_shared_bytes == 400);
  CHECK(report->functions.at("k").spill_load_bytes == 24);
  CHECK(report->functions.at("_Z7dividedff").stack_bytes == 8);
  CHECK(report->total().spill_store_bytes == 20);
  CHECK_FALSE(read_ptxas_report("warning: something\n"));
}

TEST_CASE("the occupancy is what the documentation's limits say") {
  // One warp a block: as many blocks as a multiprocessor takes.
  CHECK(occupancy(90, {32, 32, 0, 0}).blocks == 32);
  CHECK(occupancy(90, {32, 32, 0, 0}).limited_by == "blocks");
  CHECK(occupancy(75, {32, 32, 0, 0}).blocks == 16);
  CHECK(occupancy(86, {32, 32, 0, 0}).blocks == 16);
  CHECK(occupancy(89, {32, 32, 0, 0}).blocks == 24);
  // Threads.
  CHECK(occupancy(90, {1024, 32, 0, 0}).blocks == 2);
  CHECK(occupancy(75, {1024, 32, 0, 0}).blocks == 1);
  CHECK(occupancy(89, {512, 32, 0, 0}).blocks == 3);
  // 65,536 registers; a warp's come in units of 256: 255 a thread are 8,192 a warp.
  CHECK(occupancy(90, {256, 128, 0, 0}).blocks == 2);
  CHECK(occupancy(90, {256, 128, 0, 0}).limited_by == "registers");
  CHECK(occupancy(90, {256, 255, 0, 0}).blocks == 1);
  CHECK(occupancy(90, {32, 255, 0, 0}).blocks == 8);
  CHECK(occupancy(90, {1024, 255, 0, 0}).blocks == 0);
  // Shared memory: 228 KiB, of which each block takes 1 KiB for the driver.
  CHECK(occupancy(90, {32, 32, 0, 56 * 1024}).blocks == 4);
  CHECK(occupancy(90, {32, 32, 1024, 55 * 1024}).blocks == 4);
  CHECK(occupancy(90, {32, 32, 1025, 55 * 1024}).blocks == 3);
  CHECK(occupancy(90, {32, 32, 0, 227 * 1024}).blocks == 1);
  CHECK(occupancy(90, {32, 32, 0, 56 * 1024}).limited_by == "shared memory");
  CHECK(occupancy(75, {32, 32, 0, 64 * 1024}).blocks == 1);
  CHECK_THROWS_WITH(occupancy(61, {32, 32, 0, 0}), containing("sm_61"));
}
