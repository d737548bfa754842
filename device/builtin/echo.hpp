// Echo: gives back what it was sent. The benchmark's actor.
#pragma once

#include <gyre/device/parallel.hpp>
#include <gyre/messages/echo.view.hpp>

namespace gyre::actors {

namespace view = gyre::messages::view;

struct Echo {
  static constexpr bool side_by_side = true;

  GYRE_DEVICE void on(gyre::Context& ctx, view::EchoRequest::Reader in, view::EchoResponse::Builder out) {
    const auto payload = in.getPayload();
    out.setSequence(in.getSequence());
    const auto echoed = out.initPayload(payload.size());
    gyre::copy(ctx, payload, echoed);
  }
};

}  // namespace gyre::actors
