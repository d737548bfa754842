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

}  // namespace gyre::bench
