// Requests whose buffers' handles are not good.
#pragma once

#include <gyre/gyre.hpp>

#include "bad_messages.hpp"

namespace gyre::tools {

/// Each kind of bad handle, `rounds` times: each must be answered with its own error, and good requests
/// between them rightly.
BadMessages send_bad_handles(Runtime& runtime, uint32_t rounds);

}  // namespace gyre::tools
