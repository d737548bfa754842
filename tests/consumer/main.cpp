// Asks actors of this project, whose messages are its own, and checks what they answer.
#include <gyre/gyre.hpp>
#include <gyre/runtime/launch_verdict.hpp>
#include <till_sources.hpp>

#include <till/actors/adjuster.hpp>
#include <till/actors/till.hpp>
#include <till/schemas/adjust-v1.0,draft.official.hpp>
#include <till/schemas/old/order.official.hpp>
#include <till/schemas/order.official.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// The content of the reply; throws where there is none.
template <class Reply>
auto& content(Reply& reply) {
  if (!reply) throw std::runtime_error(reply.error().message());
  return reply.value();
}

void check(const char* what, const std::string& seen, const std::string& expected) {
  std::printf("%s: %s\n", what, seen.c_str());
  if (seen != expected) throw std::runtime_error(std::string(what) + " should be " + expected);
}

void ask(const gyre::ActorSet& actors, gyre::EngineKind engine) {
  gyre::Runtime runtime = gyre::Runtime::launch(actors, {.engine = engine});
  std::printf("from %s\n", runtime.device_name().c_str());
  gyre::Client client = runtime.client();
  const gyre::Address<till::Till> counter{.key = 1};

  auto order = client
                   .ask<till::OrderRequest>(counter,
                                            [](till::OrderRequest::Builder request) {
                                              request.setAmount(2);
                                              request.setUnit(shop::Unit::DOZEN);
                                            })
                   .get();
  check("sold", std::to_string(content(order)->getPieces()), "24");

  auto old_order = client
                       .ask<till::old::OrderRequest>(counter,
                                                     [](till::old::OrderRequest::Builder request) {
                                                       request.setPieces(3);
                                                       request.setRounding(till::Rounding::TENS);
                                                     })
                       .get();
  check("sold, in tens", std::to_string(content(old_order)->getPieces()), "30");
  check("rounded", content(old_order)->getRounding() == till::Rounding::TENS ? "to tens" : "not", "to tens");

  auto adjusted = client
                      .ask<till::AdjustRequest>(gyre::Address<till::Adjuster>{.key = 1},
                                                [](till::AdjustRequest::Builder request) {
                                                  request.setOperation(gyre::messages::Operation::MULTIPLY);
                                                  request.setBy(3);
                                                  request.setPrices({1, 20, -300});
                                                })
                      .get();
  std::string prices;
  for (const int32_t price : content(adjusted)->getPrices()) prices += std::to_string(price) + ' ';
  check("prices", prices, "3 60 -900 ");
  if (content(adjusted)->getOperation() != gyre::messages::Operation::MULTIPLY)
    throw std::runtime_error("wrong enum");
  if (!runtime.terminate().books.balanced()) throw std::runtime_error("the books do not balance");
}

void compile(const gyre::ActorSet& actors) {
  gyre::Options options;
  options.engine = gyre::EngineKind::cuda;
  const gyre::LaunchVerdict verdict = gyre::check_launch(actors, options, {.architecture = 90});
  if (verdict.engine_missing) {
    std::printf("not compiled for a GPU: %s", verdict.text().c_str());
  } else if (verdict.kernel) {
    std::printf("compiled for sm_%d\n", verdict.kernel->architecture);
  } else {
    throw std::runtime_error("not compiled:\n" + verdict.text());
  }
}

}  // namespace

// consumer [cuda]
int main(int argc, char** argv) {
  try {
    const auto actors = gyre::ActorSet::of<till::Till, till::Adjuster>(till::sources);
    const bool on_gpu = argc > 1 && std::string(argv[1]) == "cuda";
    ask(actors, on_gpu ? gyre::EngineKind::cuda : gyre::EngineKind::cpu);
    if (!on_gpu) compile(actors);
    for (const gyre::CompiledAhead& compiled : actors.sources().ahead) {
      if (compiled.kernel != actors.kernel()) throw std::runtime_error("another set was compiled ahead");
      std::printf("compiled ahead for sm_%d\n", compiled.architecture);
    }
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "FAILED: %s\n", exception.what());
    return 1;
  }
  return 0;
}
