// The first reply of a process, by where its actors' machine code comes from.
//   gyre-gpu-ahead ahead|compiled|cached [groups|halves|matrices|cub] [hidden]
// ahead: compiled when the program was built. compiled: by NVRTC, into the disk cache. cached: from there.
// groups, halves, matrices, cub: of an actor that uses cooperative groups, fp16 and bf16 numbers, tensor
// cores or CUB; else of the built-in ones. hidden: neither NVRTC nor the toolkit can be found, or the program
// is skipped. Exit: 0 every reply was right and the actors came from there, 1 not, 2 bad usage, 77 skipped.
#include <gyre/device/builtin/echo.hpp>
#include <gyre/device/builtin/vector_add.hpp>
#include <gyre/gyre.hpp>
#include <gyre/messages/vector_add.official.hpp>
#include <gyre/runtime/cuda/program.hpp>
#include <gyre/runtime/cuda/toolkit.hpp>
#include <gyre_builtin_actors_sources.hpp>
#include <gyre_grouped_actors_sources.hpp>
#include <gyre_halves_actors_sources.hpp>
#include <gyre_matrices_actors_sources.hpp>
#include <gyre_sorted_actors_sources.hpp>
#include <support/actors/toolkit.official.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "support/actors/grouped.hpp"
#include "support/actors/halves.hpp"
#include "support/actors/matrices.hpp"
#include "support/actors/sorted.hpp"

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

// Whether the answer to a request is right: one function for each set of actors. `length` varies the request.
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
// Whole numbers below 4, which each format holds exactly, and so each sum.
auto pair_of(uint32_t length) {
  return [length](gyre_toolkit::Pair::Builder request) {
    auto a = request.initA(length), b = request.initB(length);
    for (uint32_t i = 0; i < length; ++i) a.set(i, float(i % 3)), b.set(i, float(i % 4));
  };
}
bool asks_products(Client client, uint32_t length) {
  const auto reply = client.ask<gyre_toolkit::Pair>(Address<gyre_toolkit::Halves>{}, pair_of(length)).get();
  if (!reply || reply.value()->getValues().size() != 2) return false;
  float product = 0;
  for (uint32_t i = 0; i < length; ++i) product += float(i % 3) * float(i % 4);
  return reply.value()->getValues()[0] == product && reply.value()->getValues()[1] == product;
}
bool asks_matrices(Client client, uint32_t) {
  constexpr uint32_t side = 16;
  const auto reply =
      client.ask<gyre_toolkit::Pair>(Address<gyre_toolkit::Matrices>{}, pair_of(side * side)).get();
  if (!reply || reply.value()->getValues().size() != side * side) return false;
  for (uint32_t i = 0; i < side * side; ++i) {
    float sum = 0;
    for (uint32_t k = 0; k < side; ++k)
      sum += float((i / side * side + k) % 3) * float((k * side + i % side) % 4);
    if (reply.value()->getValues()[i] != sum) return false;
  }
  return true;
}
bool asks_order(Client client, uint32_t length) {
  std::vector<uint32_t> numbers(length);
  for (uint32_t i = 0; i < length; ++i) numbers[i] = i * 2654435761u;
  const auto reply = client
                         .ask<gyre_toolkit::Numbers>(Address<gyre_toolkit::Sorted>{},
                                                     [&](gyre_toolkit::Numbers::Builder request) {
                                                       auto values = request.initValues(length);
                                                       for (uint32_t i = 0; i < length; ++i)
                                                         values.set(i, numbers[i]);
                                                     })
                         .get();
  std::sort(numbers.begin(), numbers.end());
  if (!reply || reply.value()->getValues().size() != length) return false;
  const auto sorted = reply.value()->getValues();
  return std::equal(numbers.begin(), numbers.end(), sorted.begin());
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

template <class... Actors>
ActorSet set_of(const ActorSources& sources) {
  return ActorSet::of<Actors...>(sources);
}
struct Subject {
  std::string_view word, name;
  const ActorSources& sources;
  ActorSet (*set)(const ActorSources&);
  bool (*asks)(Client, uint32_t);
};
// The first where no word says which.
const Subject subjects[] = {
    {"", "built-in", gyre_builtin_actors::sources, set_of<actors::Echo, actors::VectorAdd>, asks_vectors},
    {"groups", "cooperative groups", gyre_grouped_actors::sources, set_of<gyre_toolkit::Grouped>, asks_sums},
    {"halves", "fp16 and bf16", gyre_halves_actors::sources, set_of<gyre_toolkit::Halves>, asks_products},
    {"matrices", "tensor cores", gyre_matrices_actors::sources, set_of<gyre_toolkit::Matrices>,
     asks_matrices},
    {"cub", "CUB", gyre_sorted_actors::sources, set_of<gyre_toolkit::Sorted>, asks_order},
};

int run(std::string_view from, const Subject& subject, Clock::time_point began) {
  const std::string_view expected = from == "ahead"    ? "compiled ahead"
                                    : from == "cached" ? "found compiled"
                                                       : "compiled";
  Options options;
  options.engine = EngineKind::cuda;
  ActorSources sources = subject.sources;
  if (from != "ahead") sources.ahead = {};
  Runtime runtime = Runtime::launch(subject.set(sources), options);
  bool right = subject.asks(runtime.client(), 7);
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  for (uint32_t length = 0; length < 40; ++length) right = subject.asks(runtime.client(), length) && right;
  const Timings timings = runtime.timings();
  std::printf("%s, %s: the first reply came %.1f ms after the program began; the actors took %.1f ms\n",
              std::string(subject.name).c_str(), std::string(how_compiled(timings)).c_str(), ms,
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
  const Subject* subject = &subjects[0];
  bool hidden = false, known = from == "ahead" || from == "compiled" || from == "cached";
  for (int n = 2; n < count; ++n) {
    const std::string_view word = arguments[n];
    const Subject* const named = std::find_if(std::begin(subjects) + 1, std::end(subjects),
                                              [word](const Subject& s) { return s.word == word; });
    hidden = hidden || word == "hidden";
    if (named != std::end(subjects)) subject = named;
    known = known && (word == "hidden" || named != std::end(subjects));
  }
  if (!known) {
    std::fputs("gyre-gpu-ahead ahead|compiled|cached [groups|halves|matrices|cub] [hidden]\n", stderr);
    return 2;
  }
  if (from == "ahead" && subject->sources.ahead.empty())
    return std::puts("skipped: NVRTC or the toolkit was not there when this program was built"), 77;
  if (hidden && toolkit_is_here())
    return std::puts("skipped: NVRTC or the CUDA toolkit is found all the same"), 77;
  try {
    return run(from, *subject, began);
  } catch (const EngineUnavailable& error) {
    if (from != "ahead" || !hidden) return std::printf("skipped: %s\n", error.what()), 77;
    return std::printf("wrong: %s\n", error.what()), 1;
  } catch (const Error& error) {
    return std::printf("wrong: %s\n", error.what()), 1;
  }
}
