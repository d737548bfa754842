// Gyre: actors on a GPU, or on CPU threads if there is none. This header is the whole C++ API for
// programs.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/async/completion_queue.hpp>
#include <gyre/runtime/buffer.hpp>
#include <gyre/runtime/client.hpp>
#include <gyre/runtime/errors.hpp>
#include <gyre/runtime/launch_verdict.hpp>
#include <gyre/runtime/options.hpp>
#include <gyre/runtime/runtime.hpp>
