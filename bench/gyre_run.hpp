// One launch of Gyre for one row: nothing of it is left for the next row to wait for, and its books balance.
#pragma once

#include <gyre/gyre.hpp>

#include <functional>
#include <string>
#include <vector>

namespace gyre::bench {

/// Launches `actors`, calls `body(runtime)`, and terminates. `row`: what errors call it. Throws what
/// launching and `body` throw, with the engine's own reason where it failed, and Error unless every worker
/// ended, every accepted ask was answered and every accepted tell processed.
Termination run_on_gyre(const ActorSet& actors, const Options& options, const std::string& row,
                        const std::function<void(Runtime&)>& body);

/// Returns the command line of a program that launches as `options` say, without the program itself.
std::vector<std::string> arguments_of(const Options& options);

}  // namespace gyre::bench
