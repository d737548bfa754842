// The options that say how a program reaches a NATS server, the same in gyre-nats and gyre-ask.
#pragma once

#include <gyre/runtime/nats/options.hpp>

#include "command_line.hpp"

namespace gyre::tools {

/// Adds --server --creds --tls-ca --tls-cert --tls-key to `command`, filling `connection`, which must outlive
/// the parse.
void add_server_options(ProgramCommand command, nats::ConnectionOptions& connection);

}  // namespace gyre::tools
