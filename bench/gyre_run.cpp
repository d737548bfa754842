#include "gyre_run.hpp"

#include <fmt/format.h>

#include "watching.hpp"

namespace gyre::bench {

Termination run_on_gyre(const ActorSet& actors, const Options& options, const std::string& row,
                        const std::function<void(Runtime&)>& body) {
  Runtime runtime = Runtime::launch(actors, options);
  const auto metrics = tools::serve_metrics(runtime);
  try {
    body(runtime);
  } catch (const Error& error) {
    if (const std::string cause = runtime.failure(); !cause.empty())
      throw Error(std::string(error.what()) + "\n" + cause);
    throw;
  }
  const Termination termination = runtime.terminate(options.timeout);
  const Books& books = termination.books;
  if (termination.worker_stuck) {
    throw Error(
        fmt::format("ending the {} row: a worker did not stop, and the next row would wait for it for "
                    "ever; {}",
                    row, runtime.failure()));
  }
  if (!books.balanced() || books.asks.answered != books.asks.accepted ||
      books.tells.processed != books.tells.accepted) {
    throw Error(
        fmt::format("ending the {} row: {} asks accepted, {} answered; {} tells accepted, {} processed; "
                    "books {}; please report it",
                    row, books.asks.accepted, books.asks.answered, books.tells.accepted,
                    books.tells.processed, books.balanced() ? "balanced" : "not balanced"));
  }
  return termination;
}

std::vector<std::string> arguments_of(const Options& options) {
  return {"--engine",
          std::string(name(options.engine)),
          "--transport",
          std::string(name(options.transport)),
          "--isolation",
          std::string(name(options.isolation)),
          "--multiprocessors",
          options.multiprocessors == all_multiprocessors ? "all" : fmt::format("{}", options.multiprocessors),
          "--context",
          std::string(name(options.context)),
          "--device",
          fmt::format("{}", options.device),
          "--workers",
          fmt::format("{}", options.workers),
          "--block",
          fmt::format("{}", options.block),
          "--slots",
          fmt::format("{}", options.slots),
          "--slot-bytes",
          fmt::format("{}", options.slot_bytes),
          "--arena-bytes",
          fmt::format("{}", options.arena_bytes),
          "--actors-per-worker",
          fmt::format("{}", options.actors_per_worker),
          "--timeout",
          fmt::format("{}", options.timeout.count()),
          "--wait",
          std::string(name(options.wait))};
}

}  // namespace gyre::bench
