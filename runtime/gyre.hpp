// Gyre: actors on a GPU, or on CPU threads if there is none. This header is the C++ API for
// launching actors and talking to them; what fewer programs need has headers of its own: the built-in actors,
// coroutines, Asio, the log, the check of a launch, the Prometheus endpoint.
#pragma once

#include <gyre/device/pool.hpp>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/async/completion_queue.hpp>
#include <gyre/runtime/buffer.hpp>
#include <gyre/runtime/client.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/options.hpp>
#include <gyre/runtime/runtime.hpp>
