# The API reference: target api_reference writes it to <build>/api, from what programs and handlers include. Doxygen is
# looked for; where there is none, the target says so.
find_program(DOXYGEN doxygen)  # doxygen

set(public_headers
  # programs: what <gyre/gyre.hpp> includes, and what that says of its values
  runtime/actor_page.hpp runtime/actor_set.hpp runtime/buffer.hpp runtime/client.hpp runtime/errors.hpp runtime/options.hpp
  runtime/runtime.hpp runtime/address.hpp
  runtime/actors/actor_sources.hpp runtime/books.hpp runtime/memory/buffer_memory.hpp runtime/builtin_actors.hpp
  runtime/core/dead_letters.hpp runtime/encoded.hpp runtime/future.hpp runtime/stats.hpp bridge/errors/error.hpp
  messages/status.hpp
  # what programs include besides
  runtime/async/asio.hpp runtime/async/await.hpp runtime/async/completion_queue.hpp runtime/launch_verdict.hpp
  runtime/log.hpp
  runtime/telemetry/actor_requests.hpp runtime/telemetry/prometheus_endpoint.hpp
  # tests
  runtime/testing/stepped_runtime.hpp
  runtime/nats/gateway.hpp runtime/nats/headers.hpp runtime/nats/options.hpp runtime/nats/subject.hpp
  # handlers
  device/context.hpp device/matrix.hpp device/parallel.hpp device/buffer.hpp device/actor/check.hpp device/actor/handlers.hpp device/actor/on_batch.hpp
  device/actor/rights.hpp device/actor/stopwatch.hpp device/pool.hpp device/protocol.hpp device/timer.hpp device/topic.hpp)
set(GYRE_API_DIR ${PROJECT_BINARY_DIR}/api)
list(TRANSFORM public_headers PREPEND "\"${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE GYRE_API_INPUT)
list(TRANSFORM GYRE_API_INPUT APPEND "\"")
list(JOIN GYRE_API_INPUT " \\\n                         " GYRE_API_INPUT)
configure_file(${PROJECT_SOURCE_DIR}/docs/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)

add_custom_target(api_reference
  COMMAND ${PROJECT_SOURCE_DIR}/tests/tools/api_reference_test.sh ${DOXYGEN} ${PROJECT_BINARY_DIR}/Doxyfile
          ${PROJECT_SOURCE_DIR}
  COMMENT "Writing the API reference to ${GYRE_API_DIR}"
  VERBATIM)
