// A Prometheus endpoint: serves a runtime's stats over HTTP. docs/reference/metrics.md lists the metrics. Part of
// the library gyre::telemetry.
#pragma once

#include <gyre/runtime/stats.hpp>

#include <functional>
#include <memory>
#include <string>

namespace gyre {

/// Configures where stats are served.
struct PrometheusOptions {
  /// Address and port to listen on; port 0 selects a free port. There is no authentication: an address
  /// other than 127.0.0.1 lets other machines read the stats.
  std::string address = "127.0.0.1:9464";
  std::string path = "/metrics";
};

/// Serves stats to every HTTP client, from its own threads, until it is destroyed. After the runtime has
/// terminated it serves the last stats. Move-only. Do not use it in a child of fork().
class PrometheusEndpoint {
 public:
  /// Starts to listen.
  /// @param read    returns the stats: Runtime::stats_reader(). Called from the endpoint's threads.
  /// @throws Error  if it cannot listen on the address
  explicit PrometheusEndpoint(std::function<Stats()> read, const PrometheusOptions& options = {});
  ~PrometheusEndpoint();
  PrometheusEndpoint(PrometheusEndpoint&&) noexcept;
  PrometheusEndpoint& operator=(PrometheusEndpoint&&) noexcept;

  /// Returns the port that the endpoint listens on.
  int port() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace gyre
