// The host's side of a launched region: what all parts of Core work on.
#pragma once

#include <gyre/bridge/fork.hpp>
#include <gyre/runtime/calls/call_table.hpp>
#include <gyre/runtime/core/engine.hpp>
#include <gyre/runtime/core/handler_log.hpp>
#include <gyre/runtime/core/host_bridge.hpp>
#include <gyre/runtime/memory/arena.hpp>
#include <gyre/runtime/memory/copy_threads.hpp>

#include <deque>
#include <memory>

namespace gyre::detail {

/// The engine, its region, and the host's ends of everything in it. Its parts are thread-safe, each by
/// itself.
struct HostSide {
  /// Initialises the region for the engine's workers; does not launch them. Throws Error.
  HostSide(ActorSet actors, const Options& options, std::unique_ptr<Engine> engine);

  const RingShape& shape() const { return layout.shape; }
  /// True in a forked child: the workers, and the region, are the parent's, and nothing here touches them.
  bool forked() const noexcept { return fork.forked(); }

  const ForkGuard fork;
  const ActorSet actors;
  const Options options;
  const RegionLayout layout;
  const std::unique_ptr<Engine> engine;
  std::deque<HostBridge> bridges;  // one a worker; never moved
  const std::shared_ptr<CopyThreads> copy_threads = CopyThreads::shared();
  HandlerLog handler_log;
  Arena arena;
  CallTable calls;
};

}  // namespace gyre::detail
