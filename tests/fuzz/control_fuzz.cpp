// Any bytes as control messages between a program and its engine process: receiving them and reading every
// field, as either side, ends in values or in an exception, and takes memory in proportion to the bytes.
//
// An input is a byte, and the stream; where that byte is odd, what follows it gets a good frame.
#include <capnp/dynamic.h>
#include <gyre/runtime/process/launch_message.hpp>

#include "tests/fuzz/control_messages.hpp"

using namespace gyre_fuzz;
using namespace gyre;

namespace {

template <class Root>
void read_all(Received& received) {
  try {
    const auto message = received.root<Root>();
    (void)kj::str(capnp::DynamicStruct::Reader(message));
  } catch (const kj::Exception&) {
  }
}

void make_launch(Received& received) {
  try {
    const auto message = received.root<ToEngine>();
    if (!message.isLaunch() && !message.isJudge()) return;
    const auto launch = message.isLaunch() ? message.getLaunch() : message.getJudge();
    const Options options = process::options_of(launch);
    const ActorSet actors = process::actors_of(launch);
    (void)(options.problems() + actors.problems(options));
  } catch (const kj::Exception&) {
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WithoutTraces without_traces;
  Input input(data, size);
  const bool framed = input.take<uint8_t>() % 2 == 1;
  std::string bytes = input.take_bytes(input.size());
  if (framed) {
    bytes.resize((bytes.size() + 7) / 8 * 8);
    bytes = frame_of(bytes.size()) + bytes;
  }
  Sockets sockets;
  Channel reader(std::move(sockets.second));
  if (!bytes.empty()) write_all(sockets.first.get(), bytes.data(), bytes.size());
  sockets.first.close();
  try {
    while (auto received = reader.receive()) {
      make_launch(*received);  // first: what was read counts
      read_all<ToEngine>(*received);
      read_all<FromEngine>(*received);
    }
    if (!reader.closed()) found("receiving ended before the stream");
  } catch (const process::MalformedMessage&) {
  }
  return 0;
}
