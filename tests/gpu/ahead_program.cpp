// The first reply of a process, by where its actors' machine code comes from.
//   gyre-gpu-ahead ahead|compiled|cached [toolkit] [hidden]
// ahead: compiled when the program was built. compiled: by NVRTC, into the disk cache. cached: from there.
// toolkit: of an actor that uses cooperative groups; else of the built-in ones. hidden: neither NVRTC nor the
// toolkit can be found, or the program is skipped.
// Exit: 0 every reply was right and the actors came from there, 1 not, 2 bad usage, 77 skipped.
#include <gyre/device/builtin/echo.hpp>
#include <gyre/device/builtin/vector_add.hpp>
#include <gyre/gyre.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>
#include <gyre_builtin_actors_sources.hpp>
#include <gyre_grouped_actors_sources.hpp>
#include <support/actors/toolkit.official.hpp>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "support/actors/grouped.hpp"

using namespace gyre;

namespace {

using Clock = std::chrono::steady_clock;

bool toolkit_is_here() {
  if (cuda::nvrtc_available()) return true;
  for (const int major : {12, 13}) {
    if (!cuda::find_toolkit_headers(major).folders.empty()) return true;
  }
  return false;
}

ActorSet actors_of(bool toolkit, bool ahead) {
  ActorSources sources = toolkit ? gyre_grouped_actors::sources : gyre_builtin_actors::sources;
  if (!ahead) sources.ahead = {};
  return toolkit ? ActorSet::of<gyre_toolkit::Grouped>(sources)
                 : ActorSet::of<actors::Echo, actors::VectorAdd>(sources);
}

// Whether the answer to a request is right.
bool asks_sums(Client client, uint32_t length) {
  const auto reply = client
                         .ask<gyre_toolkit::Numbers>(Address<gyre_toolkit::Grouped>{},
                                                     [length](gyre_toolkit::Numbers::Builder request) {
                                                       auto values = request.initValues(length);
                                                       for (uint32_t i = 0; i < length; ++i)
                                                         values.set(i, i * i);
                                                     })
                         .get();
  if (!reply || reply.value()->getValues().size() != length) return false;
  uint32_t sum = 0;
  for (uint32_t i = 0; i < length; ++i) {
    if (reply.value()->getValues()[i] != (sum += i * i)) return false;
  }
  return reply.value()->getSum() == sum;
}
bool asks_vectors(Client client, uint32_t length) {
  const auto reply =
      client
          .ask<messages::VectorAddRequest>(Address<actors::VectorAdd>{1},
                                           [length](messages::VectorAddRequest::Builder request) {
                                             request.setOperation(messages::Operation::MULTIPLY);
                                             auto a = request.initA(length), b = request.initB(length);
                                             for (uint32_t i = 0; i < length; ++i)
                                               a.set(i, float(i)), b.set(i, 0.5f);
                                           })
          .get();
  if (!reply || reply.value()->getResult().size() != length) return false;
  for (uint32_t i = 0; i < length; ++i) {
    if (reply.value()->getResult()[i] != 0.5f * float(i)) return false;
  }
  return true;
}

int run(std::string_view from, bool toolkit, Clock::time_point began) {
  const std::string_view expected = from == "ahead"    ? "compiled ahead"
                                    : from == "cached" ? "found compiled"
                                                       : "compiled";
  Options options;
  options.engine = EngineKind::cuda;
  Runtime runtime = Runtime::launch(actors_of(toolkit, from == "ahead"), options);
  const auto asks = toolkit ? asks_sums : asks_vectors;
  bool right = asks(runtime.client(), 7);
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  for (uint32_t length = 0; length < 40; ++length) right = asks(runtime.client(), length) && right;
  const Timings timings = runtime.timings();
  std::printf("%s, %s: the first reply came %.1f ms after the program began; the actors took %.1f ms\n",
              toolkit ? "cooperative groups" : "built-in", std::string(how_compiled(timings)).c_str(), ms,
              timings.compile_ms);
  if (!right) return std::puts("wrong: a reply is not what was asked for"), 1;
  if (how_compiled(timings) != expected)
    return std::printf("wrong: expected the actors %s\n", std::string(expected).c_str()), 1;
  if (!runtime.terminate().books.balanced()) return std::puts("wrong: the books do not balance"), 1;
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const auto began = Clock::now();
  const std::string_view from = count > 1 ? arguments[1] : "";
  bool toolkit = false, hidden = false, known = from == "ahead" || from == "compiled" || from == "cached";
  for (int n = 2; n < count; ++n) {
    const std::string_view word = arguments[n];
    toolkit = toolkit || word == "toolkit";
    hidden = hidden || word == "hidden";
    known = known && (word == "toolkit" || word == "hidden");
  }
  if (!known) return std::fputs("gyre-gpu-ahead ahead|compiled|cached [toolkit] [hidden]\n", stderr), 2;
  const ActorSources& sources = toolkit ? gyre_grouped_actors::sources : gyre_builtin_actors::sources;
  if (from == "ahead" && sources.ahead.empty())
    return std::puts("skipped: NVRTC or the toolkit was not there when this program was built"), 77;
  if (hidden && toolkit_is_here())
    return std::puts("skipped: NVRTC or the CUDA toolkit is found all the same"), 77;
  try {
    return run(from, toolkit, began);
  } catch (const EngineUnavailable& error) {
    if (from != "ahead" || !hidden) return std::printf("skipped: %s\n", error.what()), 77;
    return std::printf("wrong: %s\n", error.what()), 1;
  } catch (const Error& error) {
    return std::printf("wrong: %s\n", error.what()), 1;
  }
}
