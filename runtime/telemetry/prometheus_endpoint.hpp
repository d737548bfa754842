// A Prometheus endpoint: a runtime's stats over HTTP (docs/watching.md lists the names). Of the library
// gyre::telemetry.
#pragma once

#include <gyre/runtime/stats.hpp>

#include <functional>
#include <memory>
#include <string>

namespace gyre {

/// Where stats are served.
struct PrometheusOptions {
  /// Where to listen: address and port. Port 0: one that is free. Nobody is asked who they are: an address
  /// other than 127.0.0.1 lets other machines read.
  std::string address = "127.0.0.1:9464";
  std::string path = "/metrics";
};

/// Serves `read()`, Runtime::stats_reader(), to whoever asks, from threads of its own, until it is destroyed;
/// after the runtime has terminated, its last stats. Do not take it into a child of fork().
class PrometheusEndpoint {
 public:
  /// Throws Error where it cannot listen.
  explicit PrometheusEndpoint(std::function<Stats()> read, const PrometheusOptions& options = {});
  ~PrometheusEndpoint();
  PrometheusEndpoint(PrometheusEndpoint&&) noexcept;
  PrometheusEndpoint& operator=(PrometheusEndpoint&&) noexcept;

  /// That it listens on.
  int port() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace gyre
