// Actor types whose names collide in subjects.
#pragma once

#include <gyre/gyre.hpp>
#include <gyre_test_actors_sources.hpp>
#include <support/actors/probe.official.hpp>
#include <support/actors/probe.view.hpp>

struct GivesNothing {
  using Handles = gyre::Handles<gyre_test::view::ProbeNote>;
  void on(gyre::Context&, gyre_test::view::ProbeNote::Reader) {}
};

namespace same_names {
struct Counter : GivesNothing {};
}  // namespace same_names
struct same_names_Counter : GivesNothing {};  // NOLINT: its name is the point
struct durable : GivesNothing {};             // NOLINT: likewise
