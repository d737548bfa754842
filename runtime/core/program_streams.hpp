// The program's own CUDA streams, ordered before and after asks.
#pragma once

#include <chrono>
#include <memory>

namespace gyre {

/// Makes a stream wait, until it is destroyed. By any thread; never throws, and makes no CUDA call.
class StreamHold {
 public:
  StreamHold() = default;
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
  virtual ~StreamHold() = default;
};

/// What an engine does with streams of the program. Makes CUDA calls in the calling thread: in its current
/// context, or in the primary one that the program has made; makes none. A stream is a CUstream; null and 1
/// are the default stream, 2 is the thread's. Thread-safe. Every function throws Error.
class ProgramStreams {
 public:
  ProgramStreams() = default;
  ProgramStreams(const ProgramStreams&) = delete;
  ProgramStreams& operator=(const ProgramStreams&) = delete;
  virtual ~ProgramStreams() = default;

  /// Blocks until the work that the stream was given before is done, at most for `timeout`: the error has
  /// Status::timed_out then.
  virtual void wait_for(void* stream, std::chrono::nanoseconds timeout) = 0;
  /// Lets nothing begin that the stream is given later, until the result is destroyed.
  virtual std::unique_ptr<StreamHold> hold(void* stream) = 0;
};

}  // namespace gyre
