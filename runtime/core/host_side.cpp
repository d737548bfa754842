#include <gyre/runtime/core/host_side.hpp>

#include <algorithm>

namespace gyre::detail {

namespace {

// Twice what can be in flight, so that replies may wait unread while as many asks again are under way.
uint32_t calls_for(const RegionLayout& layout) {
  const uint64_t in_flight = uint64_t(layout.workers) * layout.shape.slots;
  return uint32_t(std::clamp<uint64_t>(2 * in_flight, 1024, 65536));
}

}  // namespace

HostSide::HostSide(ActorSet actors_to_launch, const Options& launch_options,
                   std::unique_ptr<Engine> launch_engine)
    : actors(launch_engine->complete(std::move(actors_to_launch))),
      options(launch_options),
      layout(options.region_layout(actors.handlers().size())),
      engine(std::move(launch_engine)),
      stepper(engine->stepper()),
      handler_log(bridges, actors, layout.workers),
      arena(static_cast<char*>(engine->region()) + layout.arena(), layout.arena_bytes, copy_threads.get()),
      calls(calls_for(layout), layout.shape.body_capacity(), arena) {
  // Actors given as source text are known from here on.
  if (const std::string problems = actors.problems(options); !problems.empty()) {
    throw BadOptions("launching a runtime: these options are wrong:\n" + problems);
  }
  initialise_region(engine->region(), layout, options.mail_chunks());
  for (uint32_t worker = 0; worker < layout.workers; ++worker) {
    bridges.emplace_back(Bridge::of(engine->region(), layout, worker),
                         engine->bar_inbound().of_worker(layout, worker), engine->doorbell(worker),
                         actors.rights().tells_host ? told_slots(layout.shape) : 0);
    if (Doorbell* const bell = bridges.back().bell()) bell->set_calls(calls);
  }
  auto* const types =
      reinterpret_cast<HandlerTypes*>(static_cast<char*>(engine->region()) + layout.handler_types());
  for (size_t n = 0; n < actors.handlers().size(); ++n) {
    types[n] = {actors.handlers()[n].request, actors.handlers()[n].response};
  }
}

}  // namespace gyre::detail
