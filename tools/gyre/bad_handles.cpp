#include "bad_handles.hpp"

#include <fmt/format.h>
#include <gyre/runtime/builtin_actors.hpp>

#include <optional>
#include <vector>

#include "common_options.hpp"
#include "vectors.hpp"

namespace gyre::tools {

namespace {

using messages::Operation;
using messages::VectorAddRequest;

constexpr size_t elements = 20;

class Sender {
 public:
  explicit Sender(Runtime& runtime)
      : client_(runtime.client()),
        good_(ramp(elements, 2, Operation::ADD)),
        a_(runtime.allocate<float>(MemoryKind::device, elements)),
        b_(runtime.allocate<float>(MemoryKind::device, elements)),
        result_(runtime.allocate<float>(MemoryKind::device, elements)) {
    a_.write(good_.a);
    b_.write(good_.b);
  }

  /// `spoil(request)` makes a good request one that must be answered with `expected` and its `text`.
  template <class Spoil>
  void send(BufferFault expected, const std::string& text, Spoil&& spoil) {
    if (!report_.wrong.empty() || interrupt_requested()) return;
    ++report_.sent;
    const auto reply = ask(spoil);
    if (reply) return wrong(fmt::format("a request that must be answered «{}» was taken for good", text));
    ++report_.error_replies;
    const Failure& failure = reply.error();
    if (failure.status != Status::bad_buffer || BadHandle::fault_of(failure.detail) != expected ||
        failure.message().find(text) == std::string::npos) {
      return wrong(
          fmt::format("a request that must be answered «{}» was answered: {}", text, failure.message()));
    }
    send_good();
  }
  BadMessages report() const { return report_; }

 private:
  template <class Change>
  Result<Reply<messages::VectorAddResponse>> ask(Change&& change) {
    return client_
        .ask<VectorAddRequest>(Address<actors::VectorAdd>{},
                               [&](VectorAddRequest::Builder request) {
                                 request.setOperation(good_.operation);
                                 request.setLength(elements);
                                 a_.set(request.initABuffer());
                                 b_.set(request.initBBuffer());
                                 result_.set(request.initResultBuffer());
                                 change(request);
                               })
        .get();
  }
  void send_good() {
    ++report_.good;
    result_.write(std::vector<float>(elements));
    const auto reply = ask([](VectorAddRequest::Builder) {});
    if (!reply) return wrong("a good request after bad ones: " + reply.error().message());
    std::vector<float> got(elements);
    result_.read(got);
    if (const std::string problem = check_in_buffer(good_, *reply.value(), got); !problem.empty())
      wrong("a good request after bad ones: " + problem);
  }
  void wrong(const std::string& what) { report_.wrong = what; }

  Client client_;
  const Vectors good_;
  Buffer<float> a_, b_, result_;
  BadMessages report_;
};

}  // namespace

BadMessages send_bad_handles(Runtime& runtime, uint32_t rounds) {
  Sender sender(runtime);
  Runtime other =
      Runtime::launch(builtin_actors(), {.engine = EngineKind::cpu, .slots = 2, .arena_bytes = 0});
  const auto foreign = other.allocate<float>(MemoryKind::device, elements);
  const auto integers = runtime.allocate<int32_t>(MemoryKind::device, elements);
  const auto shorter = runtime.allocate<float>(MemoryKind::device, elements - 1);
  for (uint32_t round = 0; round < rounds; ++round) {
    auto freed = std::make_optional(runtime.allocate<float>(MemoryKind::device, elements));
    sender.send(BufferFault::stale, "is stale: its buffer was freed", [&](VectorAddRequest::Builder request) {
      freed->set(request.getABuffer());
      freed.reset();
    });
    sender.send(BufferFault::foreign, "is of another runtime",
                [&](VectorAddRequest::Builder request) { foreign.set(request.getBBuffer()); });
    sender.send(BufferFault::too_short, "is too short: 20 elements are wanted, and there are 19",
                [&](VectorAddRequest::Builder request) { shorter.set(request.getResultBuffer()); });
    sender.send(BufferFault::wrong_type, "is of int32 elements, and the handler wants float32",
                [&](VectorAddRequest::Builder request) { integers.set(request.getABuffer()); });
    sender.send(BufferFault::no_such_index, "names no buffer",
                [&](VectorAddRequest::Builder request) { request.getBBuffer().setIndex(~0u); });
  }
  return sender.report();
}

}  // namespace gyre::tools
