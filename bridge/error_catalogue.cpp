#include <gyre/bridge/error_catalogue.hpp>
#include <gyre/messages/status.hpp>

namespace gyre {

namespace {

constexpr ErrorEntry status(Status code, std::string_view name, std::string_view meaning,
                            std::string_view check) {
  return {ErrorSource::gyre, uint32_t(code), name, meaning, check};
}
constexpr ErrorEntry cuda(uint32_t code, std::string_view name, std::string_view meaning,
                          std::string_view check) {
  return {ErrorSource::cuda, code, name, meaning, check};
}
constexpr ErrorEntry nvrtc(uint32_t code, std::string_view name, std::string_view meaning,
                           std::string_view check) {
  return {ErrorSource::nvrtc, code, name, meaning, check};
}

// clang-format off
constexpr ErrorEntry entries[] = {
    status(Status::ok, "ok", "nothing failed", ""),
    status(Status::ring_full, "ring_full",
           "the worker's host-to-device ring, or the room for its replies, stayed full for the time allowed; the message was not sent",
           "read replies, send less at a time, launch with more --slots, or look for a handler that is slow"),
    status(Status::call_table_full, "call_table_full",
           "every call slot is taken by an ask in flight or by a reply that nobody released, or kept by threads for asks to come; the message was not sent",
           "read and release replies and futures, or launch with more --slots"),
    status(Status::too_large, "too_large",
           "the request, or the room for its reply, is larger than the arena can ever hold; the message was not sent",
           "launch with larger --arena-bytes (and --slot-bytes of 128 at least), or ask with smaller max_reply_bytes"),
    status(Status::unknown_actor, "unknown_actor",
           "the actor type is not in the actor set that was launched; the message was not sent",
           "name it in ActorSet::of<…>()"),
    status(Status::nested_fill, "nested_fill",
           "a fill function sent a message of its own; the inner message was not sent",
           "send it before or after the outer one"),
    status(Status::draining, "draining", "the runtime drains and accepts no more messages",
           "send before Runtime::drain(), or launch another runtime"),
    status(Status::terminated, "terminated",
           "the runtime ended before the message was delivered or answered", "launch another runtime"),
    status(Status::engine_failed, "engine_failed", "the engine died while the message was in flight",
           "read Runtime::failure(), and look its error up here"),
    status(Status::arena_full, "arena_full",
           "the arena had no room for a body larger than a slot within the time allowed; the message was not sent",
           "read and release replies, send less at a time, or launch with larger --arena-bytes"),
    status(Status::forked, "forked", "the process was forked, and the workers are the parent's",
           "launch a runtime in the child, or fork before launching"),
    status(Status::timed_out, "timed_out", "no reply came before the ask's deadline; the request may still be handled",
           "allow longer, send less, or look for a handler that is slow"),
    status(Status::malformed, "malformed", "the body is not the Cap'n Proto message that it was said to be",
           "read which field and word the error names, and check who made the message"),
    status(Status::unknown_message, "unknown_message", "the actor has no handler for the message's type",
           "add an on(…) for it, or send another message"),
    status(Status::reply_too_large, "reply_too_large",
           "the handler's response does not fit the room that its ask made for it",
           "ask with larger AskOptions::max_reply_bytes, or launch with larger --max-reply-bytes or --slot-bytes"),
    status(Status::handler_failed, "handler_failed", "the handler called Context::fail",
           "look the code that the error carries up in the actor's source"),
    status(Status::check_failed, "check_failed", "a GYRE_CHECK in the handler did not hold",
           "read the file and line that the error names"),
    status(Status::expired, "expired",
           "the message's deadline had passed before a worker took it; it was not handled",
           "send less at a time, or allow longer"),
    status(Status::inactive, "inactive", "the runtime is deactivated; the message was taken and not handled",
           "call Runtime::activate()"),
    status(Status::no_such_actor, "no_such_actor",
           "no actor lives at that key, and messages do not create one of this type",
           "start it with Client::start, or check the key"),
    status(Status::actor_table_full, "actor_table_full",
           "the worker has no room for another actor of that type",
           "stop some, or launch with larger --actors-per-worker or more --workers"),
    status(Status::bad_buffer, "bad_buffer",
           "a buffer's handle is stale, another runtime's, too short, or of another element type",
           "keep the buffer alive until the reply, and send handles to the runtime they come from"),
    status(Status::cancelled, "cancelled", "the ask was given up by its sender; a worker may handle it all the same",
           "nothing, if it was meant"),
    status(Status::worker_stuck, "worker_stuck",
           "a worker did not answer a control command before its deadline; its memory is left to it",
           "wait longer, or have long handlers ask ctx.should_stop()"),

    cuda(0, "CUDA_SUCCESS", "nothing failed", ""),
    cuda(1, "CUDA_ERROR_INVALID_VALUE", "the driver was given a value that it does not take",
         "run with --verbose and hold the launch's parameters against the device's limits (gyre doctor); if they are within, this is a defect of Gyre: report it"),
    cuda(2, "CUDA_ERROR_OUT_OF_MEMORY", "the device, or the host's memory that can be pinned, has no room left",
         "ask for fewer --slots or --workers or less --arena-bytes, or free memory on the device (gyre doctor and nvidia-smi show who has it)"),
    cuda(3, "CUDA_ERROR_NOT_INITIALIZED", "the driver was not initialised, or this is a child of a process that had initialised it",
         "use CUDA in the parent or in the child of a fork, not in both: launch after fork()"),
    cuda(4, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down: the process is ending",
         "terminate runtimes before main() returns, not in static destructors"),
    cuda(34, "CUDA_ERROR_STUB_LIBRARY", "the libcuda that was loaded is the toolkit's stub, which only linkers need",
         "take the toolkit's stubs folder out of LD_LIBRARY_PATH, and install NVIDIA's driver"),
    cuda(35, "cudaErrorInsufficientDriver",
         "the installed driver is older than the CUDA runtime of a program asks for (a code of the CUDA runtime; Gyre itself uses the driver)",
         "install a driver for that CUDA version; Gyre needs 525 or later"),
    cuda(36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the installed driver lacks a function that was called",
         "install a newer driver"),
    cuda(46, "CUDA_ERROR_DEVICE_UNAVAILABLE",
         "the device is there and cannot be used: another process has it in compute mode exclusive, or its mode is prohibited",
         "nvidia-smi -q -d COMPUTE shows the mode, and nvidia-smi the processes; nvidia-smi -c DEFAULT changes it"),
    cuda(100, "CUDA_ERROR_NO_DEVICE", "no GPU is visible to this process",
         "check nvidia-smi, CUDA_VISIBLE_DEVICES, and in a container that GPUs are passed in"),
    cuda(101, "CUDA_ERROR_INVALID_DEVICE", "there is no device of that number", "hold --device against nvidia-smi -L"),
    cuda(102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "the virtual GPU has no licence", "ask who runs the machine"),
    cuda(200, "CUDA_ERROR_INVALID_IMAGE",
         "the driver cannot read the compiled kernel: it comes from a newer compiler, or its file is damaged",
         "install a driver as new as NVRTC (gyre doctor shows both versions), and empty the folder of cached kernels"),
    cuda(201, "CUDA_ERROR_INVALID_CONTEXT", "the device's context is not current in this thread, or is gone",
         "look for cuDevicePrimaryCtxReset or cudaDeviceReset in this process: they end Gyre's context"),
    cuda(205, "CUDA_ERROR_MAP_FAILED", "memory could not be mapped", "free memory, and look into the system's log (dmesg)"),
    cuda(208, "CUDA_ERROR_ALREADY_MAPPED", "the memory is mapped already", "this is a defect of Gyre: report it"),
    cuda(209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the kernel was compiled for another GPU",
         "compile for the device's own compute capability (gyre doctor shows it), and empty the folder of cached kernels"),
    cuda(214, "CUDA_ERROR_ECC_UNCORRECTABLE", "the device's memory had an error that could not be corrected",
         "nvidia-smi -q -d ECC shows it; reset the device or restart the machine, and if it comes again have the device replaced"),
    cuda(218, "CUDA_ERROR_INVALID_PTX", "the driver's compiler cannot compile the PTX",
         "install a driver as new as the toolkit"),
    cuda(219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "a graphics context is not as it should be",
         "Gyre uses none: look at the other users of CUDA in this process"),
    cuda(220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "a link between GPUs had an error that could not be corrected",
         "nvidia-smi nvlink -e shows it; restart the machine"),
    cuda(221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the driver's PTX compiler (libnvidia-ptxjitcompiler) is not installed",
         "install the driver's libraries whole, and in a container pass them in"),
    cuda(222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX comes from a toolkit newer than the driver",
         "install a newer driver, or an older toolkit (12.3 at least)"),
    cuda(223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "compiling PTX is disabled", "unset CUDA_DISABLE_PTX_JIT"),
    cuda(226, "CUDA_ERROR_CONTAINED", "a fault of the device was confined to this process, whose CUDA is dead",
         "restart the process; if it comes again, look into the system's log (dmesg)"),
    cuda(300, "CUDA_ERROR_INVALID_SOURCE", "the driver does not take the kernel's source",
         "run gyre doctor --actors FILE and read the compiler's lines"),
    cuda(301, "CUDA_ERROR_FILE_NOT_FOUND", "a file is missing", "check the path that the error names"),
    cuda(302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a library of the driver lacks a function",
         "driver libraries of different versions are mixed: install the driver anew"),
    cuda(303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a library of the driver could not be initialised",
         "driver libraries of different versions are mixed: install the driver anew"),
    cuda(304, "CUDA_ERROR_OPERATING_SYSTEM", "a call to the operating system failed",
         "check the permissions of /dev/nvidia*, ulimit -a, and the system's log (dmesg); gyre doctor checks some of them"),
    cuda(400, "CUDA_ERROR_INVALID_HANDLE", "a handle of a context, module, stream or kernel is not valid (any more)",
         "look for cudaDeviceReset in this process; if there is none, this is a defect of Gyre: report it"),
    cuda(401, "CUDA_ERROR_ILLEGAL_STATE", "an object is not in a state for what was asked of it",
         "this is a defect of Gyre: report it"),
    cuda(500, "CUDA_ERROR_NOT_FOUND", "the compiled code has no kernel, or the driver no function, of that name",
         "if the error names a kernel, empty the folder of cached kernels; if a driver function, install a newer driver"),
    cuda(600, "CUDA_ERROR_NOT_READY", "the kernel still runs: no error while workers live", ""),
    cuda(700, "CUDA_ERROR_ILLEGAL_ADDRESS",
         "a handler read or wrote an address that is not its: null, past the end of a buffer, or freed. This process cannot use CUDA any more",
         "hold indices in the handler against lengths; run under compute-sanitizer to see the line; then restart the process"),
    cuda(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
         "the kernel needs more registers or shared memory than a block of that size can have",
         "use a smaller --block or smaller --slot-bytes; gyre doctor --actors FILE --block B says what fits"),
    cuda(702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the display's watchdog ended the kernel, which is meant to stay",
         "use a GPU without a display"),
    cuda(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the device's context was destroyed",
         "look for cuDevicePrimaryCtxReset or cudaDeviceReset in this process"),
    cuda(710, "CUDA_ERROR_ASSERT", "an assert() in a handler failed. This process cannot use CUDA any more",
         "read the assertion on standard error; GYRE_CHECK fails one message instead of the process"),
    cuda(712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is registered with CUDA already",
         "register it once"),
    cuda(713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered with CUDA",
         "use memory that Gyre allocated"),
    cuda(714, "CUDA_ERROR_HARDWARE_STACK_ERROR",
         "a handler's calls ran out of stack, or overwrote it. This process cannot use CUDA any more",
         "look for recursion and large local arrays in handlers"),
    cuda(715, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
         "a handler came to an instruction that there is not, __trap() for one. This process cannot use CUDA any more",
         "look for __trap and calls through bad function pointers in handlers"),
    cuda(716, "CUDA_ERROR_MISALIGNED_ADDRESS",
         "a handler used an address that is not a multiple of its type's alignment. This process cannot use CUDA any more",
         "look for casts to wider types; read message data by the views' getters"),
    cuda(717, "CUDA_ERROR_INVALID_ADDRESS_SPACE",
         "a handler used an address of one memory (global, shared, local) as one of another. This process cannot use CUDA any more",
         "look for casts of addresses in inline assembly"),
    cuda(718, "CUDA_ERROR_INVALID_PC",
         "a handler jumped to where no code is. This process cannot use CUDA any more",
         "look for calls through bad function pointers, and for writes past local arrays"),
    cuda(719, "CUDA_ERROR_LAUNCH_FAILED",
         "a handler crashed, __trap() included, or the device failed. This process cannot use CUDA any more",
         "run under compute-sanitizer to see where; look into the system's log (dmesg) for Xid lines"),
    cuda(720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
         "a cooperative kernel's blocks must all be resident at once, and so many do not fit the device",
         "ask for fewer --workers or a smaller --block; gyre doctor --grid G --block B says how many fit; another process's kernel may have the room"),
    cuda(800, "CUDA_ERROR_NOT_PERMITTED", "the operation is not permitted",
         "check the permissions of /dev/nvidia*, and whether a profiler or MPS restricts this process"),
    cuda(801, "CUDA_ERROR_NOT_SUPPORTED", "the device or this driver does not support the operation",
         "gyre doctor shows what the device lacks"),
    cuda(802, "CUDA_ERROR_SYSTEM_NOT_READY", "the NVIDIA driver, or the fabric manager of an NVSwitch machine, is not running (yet)",
         "systemctl status nvidia-fabricmanager nvidia-persistenced; start them, or wait until they have started"),
    cuda(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "libcuda and the driver in the kernel are of different versions",
         "restart the machine after a driver update; in a container, let it pass the host's libcuda in"),
    cuda(804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "the CUDA compatibility package does not work with this GPU",
         "take its folder (cuda-compat) out of LD_LIBRARY_PATH, and install a driver as new as needed"),
    cuda(805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "the MPS server could not be reached",
         "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY"),
    cuda(806, "CUDA_ERROR_MPS_RPC_FAILURE", "the MPS server did not answer as it should", "restart nvidia-cuda-mps-control"),
    cuda(807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "the MPS server starts or recovers from a fault", "try again; if it stays so, restart it"),
    cuda(808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the MPS server has as many clients as it takes", "end some"),
    cuda(809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "the MPS server has as many connections as it takes", "end some clients"),
    cuda(810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS server ended this client, for a fault of one of its clients",
         "look for the faulty client in the MPS log; restart the process"),
    cuda(912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "the cluster is larger than the kernel or the device allows",
         "gyre doctor --cluster C says what fits; 8 blocks is the most that every device with clusters takes"),
    cuda(999, "CUDA_ERROR_UNKNOWN", "the driver does not know what happened",
         "look into the system's log (dmesg) for Xid lines; nvidia-uvm may not be loaded (nvidia-modprobe -u); restart the machine"),

    nvrtc(0, "NVRTC_SUCCESS", "nothing failed", ""),
    nvrtc(1, "NVRTC_ERROR_OUT_OF_MEMORY", "the compiler ran out of host memory", "free memory on the machine"),
    nvrtc(2, "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "the compiler could not take the program",
          "check that the toolkit is installed whole; else this is a defect of Gyre: report it"),
    nvrtc(3, "NVRTC_ERROR_INVALID_INPUT", "the compiler was given something that it does not take",
          "check the actors' type names; else this is a defect of Gyre: report it"),
    nvrtc(4, "NVRTC_ERROR_INVALID_PROGRAM", "the compiler does not know the program it was handed",
          "this is a defect of Gyre: report it"),
    nvrtc(5, "NVRTC_ERROR_INVALID_OPTION", "this NVRTC does not know an option; an architecture newer than it, for one",
          "install a toolkit that knows the GPU's compute capability (gyre doctor shows both)"),
    nvrtc(6, "NVRTC_ERROR_COMPILATION", "the actors do not compile for the GPU",
          "read the compiler's lines in the error: the first is the cause. Handlers are compiled without the standard library: only Gyre's device headers and views are there"),
    nvrtc(7, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE", "the compiler could not load its built-in functions",
          "check that libnvrtc-builtins of the same version lies beside libnvrtc"),
    nvrtc(8, "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION", "a kernel was named after the program had been compiled",
          "this is a defect of Gyre: report it"),
    nvrtc(9, "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION", "a kernel's name was asked for before the program was compiled",
          "this is a defect of Gyre: report it"),
    nvrtc(10, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "the kernel's name does not name a kernel of the program",
          "check the actors' type names with their namespaces, and that their headers are among the sources"),
    nvrtc(11, "NVRTC_ERROR_INTERNAL_ERROR", "the compiler failed of itself",
          "try another version of the toolkit, and report the actor's source to NVIDIA"),
    nvrtc(12, "NVRTC_ERROR_TIME_FILE_WRITE_FAILED", "the compiler could not write its file of times", "check the folder's permissions"),
    nvrtc(13, "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED", "no precompiled header was made", "Gyre uses none: report it"),
    nvrtc(14, "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED", "a precompiled header did not fit its memory", "Gyre uses none: report it"),
    nvrtc(15, "NVRTC_ERROR_PCH_CREATE", "a precompiled header could not be made", "Gyre uses none: report it"),
    nvrtc(16, "NVRTC_ERROR_CANCELLED", "compiling was cancelled", "compile again"),
    nvrtc(17, "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED", "the compiler could not write its trace of times", "check the folder's permissions"),
};
// clang-format on

}  // namespace

std::span<const ErrorEntry> error_catalogue() { return entries; }

const ErrorEntry* find_error(ErrorSource source, uint32_t code) {
  for (const ErrorEntry& entry : entries) {
    if (entry.source == source && entry.code == code) return &entry;
  }
  return nullptr;
}

std::string error_advice(ErrorSource source, uint32_t code) {
  const ErrorEntry* const entry = find_error(source, code);
  if (entry == nullptr) return {};
  std::string text(entry->meaning);
  if (!entry->check.empty()) text += "; " + std::string(entry->check);
  return text;
}

std::string markdown_row(const ErrorEntry& entry) {
  std::string row = "| `";
  row.append(entry.name).append(" (").append(std::to_string(entry.code)).append(")` | ");
  row.append(entry.meaning).append(" | ").append(entry.check.empty() ? "–" : entry.check).append(" |");
  return row;
}

std::string_view name(ErrorSource source) {
  switch (source) {
    case ErrorSource::gyre:
      return "Gyre";
    case ErrorSource::cuda:
      return "CUDA driver";
    case ErrorSource::nvrtc:
      return "NVRTC";
  }
  return "?";
}

}  // namespace gyre
