// A launch as a control message: what of the actors and the options an engine process needs.
#pragma once

#include <gyre/runtime/process/control.capnp.h>
#include <gyre/runtime/actor_set.hpp>
#include <gyre/runtime/options.hpp>

namespace gyre::process {

/// Fills the message.
/// @param runtime_tag  BufferMemory::runtime_tag of the program's runtime
void write_launch(control::Launch::Builder message, const ActorSet& actors, const Options& options,
                  uint32_t runtime_tag);
/// Returns the actors of the message. Throws Error, or kj::Exception if the message is malformed.
ActorSet actors_of(control::Launch::Reader message);
/// Returns the options of the message: those that an engine reads; the others have their defaults. Throws
/// kj::Exception if the message is malformed.
Options options_of(control::Launch::Reader message);

/// Copies bytes into a message's field.
capnp::Data::Reader as_data(const std::vector<std::byte>& bytes);
/// Returns a view of a message's bytes.
std::span<const std::byte> as_bytes(capnp::Data::Reader data);

}  // namespace gyre::process
