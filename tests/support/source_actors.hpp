// Actors given as source text at run time, of the tests' own messages.
#pragma once

#include <gyre/runtime/actor_set.hpp>
#include <gyre_test_actors_sources.hpp>

#include <string>
#include <utility>
#include <vector>

namespace gyre_test {

inline const char* const counter_text = R"(#pragma once
#include <gyre/device/context.hpp>
#include <support/actors/probe.view.hpp>

namespace my {
namespace view = gyre_test::view;

struct Counter {
  using Handles = gyre::Handles<view::ProbeRequest, view::ProbeNote>;
  uint64_t sum = 0;
  uint32_t notes = 0;
  GYRE_DEVICE void on(gyre::Context& ctx, view::ProbeRequest::Reader in, view::ProbeResponse::Builder out) {
    out.setKey(ctx.key());
    out.setValue(sum + in.getArgument());
  }
  GYRE_DEVICE void on(gyre::Context& ctx, view::ProbeNote::Reader in) {
    if (ctx.rank() != 0) return;
    sum += in.getValue();
    ++notes;
  }
};

struct Doubler {
  static constexpr uint32_t max_per_worker = 12;
  GYRE_DEVICE void on(gyre::Context&, view::ProbeRequest::Reader in, view::ProbeResponse::Builder out) {
    out.setValue(2 * in.getArgument());
  }
};

}  // namespace my
)";

/// The tests' messages, and all else that their actors include.
inline std::vector<gyre::SourceText> test_headers() {
  std::vector<gyre::SourceText> headers;
  for (const gyre::SourceFile& file : gyre_test_actors::sources.files) {
    headers.push_back({std::string(file.name), std::string(file.text)});
  }
  return headers;
}

/// Request and response types, to be compared.
using TypePairs = std::vector<std::pair<uint64_t, uint64_t>>;
inline TypePairs types_of(const std::vector<gyre::HandlerTypes>& handlers) {
  TypePairs pairs;
  for (const gyre::HandlerTypes& types : handlers) pairs.emplace_back(types.request, types.response);
  return pairs;
}

inline gyre::ActorSet counter_from_source(std::string text = counter_text) {
  return gyre::ActorSet::from_source(std::move(text), {"my::Counter", "my::Doubler"}, test_headers());
}

}  // namespace gyre_test
