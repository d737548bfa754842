// The verdict on a launch on a CUDA device, or on a compile for one that is not here.
#pragma once

#include <gyre/runtime/cuda/engine.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/launch_verdict.hpp>

#include <functional>

namespace gyre::cuda {

/// What compiles the kernel in question, for an architecture and a block. Its log must hold what the
/// assembler reports of the kernel's use of registers (option --ptxas-options=-v). Throws as compile() does.
struct KernelCompiler {
  std::string name;  ///< the kernel's name expression
  std::function<CompiledKernel(int architecture, uint32_t block)> compile;
};

/// Of the actors' kernel.
KernelCompiler compiler_of(const ActorSet& actors);

/// Fills in `verdict`: everything but its engine. Throws nothing that a launch would throw: it is a problem
/// there. `architecture`: compiled for where there is no device; 0: not. See gyre::check_launch.
void check_launch(const KernelCompiler& compiler, const LaunchRequest& request, int ordinal, int architecture,
                  LaunchVerdict& verdict);

/// What the assembler's report in a compiler's log says of the kernel; nothing where there is no report.
std::optional<KernelLimits> reported_limits(const std::string& log);

}  // namespace gyre::cuda
