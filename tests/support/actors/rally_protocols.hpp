// What the two players may be sent, for each other.
#pragma once

#include <gyre/device/protocol.hpp>
#include <support/actors/rally.view.hpp>

namespace gyre_rally {
struct Ping;
struct Pong;
}  // namespace gyre_rally

template <>
struct gyre::ProtocolOf<gyre_rally::Ping>
    : gyre::Accepts<gyre_rally::view::Ball, gyre_rally::view::Score(gyre_rally::view::ScoreRequest)> {};
template <>
struct gyre::ProtocolOf<gyre_rally::Pong>
    : gyre::Accepts<gyre_rally::view::Ball, gyre_rally::view::Score(gyre_rally::view::ScoreRequest),
                    gyre_rally::view::Score(gyre_rally::view::OthersScoreRequest)> {};
