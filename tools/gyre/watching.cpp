#include "watching.hpp"

#if defined(GYRE_WITH_PROMETHEUS)
#include <gyre/runtime/telemetry/prometheus_endpoint.hpp>
#endif

namespace gyre::tools {

std::string& metrics_address() {
  static std::string address;
  return address;
}

std::shared_ptr<void> serve_metrics(const Runtime& runtime) {
  if (metrics_address().empty()) return nullptr;
#if defined(GYRE_WITH_PROMETHEUS)
  return std::make_shared<PrometheusEndpoint>(runtime.stats_reader(),
                                              PrometheusOptions{.address = metrics_address()});
#else
  (void)runtime;
  throw EngineUnavailable(
      "serving metrics: this Gyre was built without prometheus-cpp; install it (Debian: prometheus-cpp-dev), "
      "configure with -DGYRE_PROMETHEUS=ON and build again");
#endif
}

}  // namespace gyre::tools
