// Who sent a message to the host.
#pragma once

#include <gyre/runtime/address.hpp>

namespace gyre {

/// Names the actor that sent a message to the host: what a handler of Runtime::on() gets beside the message.
/// A plain value; its text is the runtime's.
struct FromActor {
  std::string_view type;  ///< the actor type's qualified name
  uint64_t key = 0;       ///< of the actor
  uint32_t worker = 0;    ///< that it belongs to

  /// Returns whether the actor is of that type.
  template <class Actor>
  bool is() const {
    return type == type_name<Actor>();
  }
  /// Returns the actor's address, where is<Actor>() is true.
  template <class Actor>
  Address<Actor> address() const {
    return {key};
  }
};

}  // namespace gyre
