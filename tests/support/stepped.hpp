// A runtime whose workers move only when the test says so.
#pragma once

#include <gyre/gyre.hpp>
#include <gyre/runtime/core/core.hpp>
#include <gyre/runtime/testing/stepped_engine.hpp>
#include <gyre_test_actors_sources.hpp>
#include <support/actors/probe.official.hpp>

#include <memory>
#include <thread>

#include "support/actors/probe.hpp"

namespace gyre_test {

using namespace std::chrono_literals;

gyre::ActorSet probe_actors();  // its worker is compiled once, in actor_sets.cpp

inline constexpr gyre::Address<Probe> probe{};

/// fill for an ask of the Probe actor.
inline auto asking(Action action, uint64_t argument) {
  return [action, argument](ProbeRequest::Builder request) {
    request.setAction(action);
    request.setArgument(argument);
  };
}
inline auto noting(uint64_t value) {
  return [value](ProbeNote::Builder note) { note.setValue(value); };
}

inline auto ask(gyre::Client& client, Action action, uint64_t argument,
                std::chrono::nanoseconds timeout = 60s) {
  return client.ask<ProbeRequest>(probe, asking(action, argument), timeout);
}

/// What an outcome said, and on which thread it was asked.
struct Said {
  gyre::Status status = gyre::Status::ok;
  uint64_t value = 0;
  std::thread::id thread = std::this_thread::get_id();
};
inline Said said(const gyre::Result<gyre::Reply<ProbeResponse>>& outcome) {
  if (!outcome) return {outcome.error().status, 0};
  return {gyre::Status::ok, outcome.value()->getValue()};
}

/// Until the host's clock, which is the CPU workers', has passed the time; no test relies on how long that
/// takes.
inline void pass(std::chrono::nanoseconds time) {
  const int64_t until = gyre::detail::host_now_ns() + time.count();
  while (gyre::detail::host_now_ns() < until) {
  }
}

/// A client of a core that no Runtime has.
inline gyre::Client client_of(std::shared_ptr<gyre::detail::Core> core) {
  return gyre::Client(std::make_shared<gyre::detail::Incarnations>(std::move(core)));
}

struct Stepped {
  explicit Stepped(gyre::Options options = {.slots = 4, .timeout = 5s}) {
    auto made = std::make_unique<gyre::SteppedEngine>(probe_actors(), options);
    engine = made.get();
    core = gyre::detail::make_core(probe_actors(), options, std::move(made));
    client = std::make_unique<gyre::Client>(client_of(core));
  }
  ~Stepped() { core->terminate(5s); }

  /// Until the worker has found nothing to do so often that it has published its counters.
  void work(uint32_t worker = 0) {
    for (int nothing = 0; nothing < 16;) {
      nothing = engine->step(worker) == gyre::PollOutcome::nothing ? nothing + 1 : 0;
    }
  }
  auto try_ask(uint64_t argument, std::chrono::nanoseconds timeout = 10s) {
    return client->try_ask<ProbeRequest>(probe, asking(Action::ANSWER, argument), timeout);
  }
  auto ask(Action action, uint64_t argument, std::chrono::nanoseconds timeout = 10s) {
    return client->ask<ProbeRequest>(probe, asking(action, argument), timeout);
  }

  gyre::SteppedEngine* engine = nullptr;
  std::shared_ptr<gyre::detail::Core> core;
  std::unique_ptr<gyre::Client> client;
};

}  // namespace gyre_test
