// Topics: names by which actors publish messages to subscribers that they do not know.
#pragma once

#include <gyre/messages/fixed_width.hpp>

namespace gyre {

/// Names a topic of one kind of message: `constexpr gyre::Topic<view::Price> prices{1}`. A topic needs no
/// set-up: any number names one. Topics of different messages differ, also where their numbers are equal. A
/// plain value of 8 bytes that an actor may keep in its state, or send as its number.
/// @tparam MessageType  the view of the message
template <class MessageType>
struct Topic {
  using Message = MessageType;
  uint64_t id = 0;  ///< chosen by the program
};

}  // namespace gyre
