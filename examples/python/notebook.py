"""An actor written in the notebook that asks it. Run it cell by cell, or whole.

notebook.py [ACTORS.so]: the text is compiled for the GPU. Without a GPU, give the actor as a shared object for CPU threads:
    gyre validate --build-library scorer.so --actors scorer.hpp --types notebook::Scorer --schema notebook/scorer.capnp
"""

# %% The messages, and the actor: one layer of weights, which stay on the GPU between messages.
import sys

import gyre
import numpy

SCHEMA = """@0xd7a3c1f0e5b28946;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("notebook");

struct Learn { weights @0 :List(Float32); }  # a row of inputs for each output
struct Learned { outputs @0 :UInt32; }
struct Infer { features @0 :List(Float32); }
struct Scores { scores @0 :List(Float32); }
"""

SOURCE = """#pragma once
#include <gyre/device/context.hpp>
#include <notebook/scorer.view.hpp>

namespace notebook {

struct Scorer {
  using Handles = gyre::Handles<view::Learn, view::Infer>;
  static constexpr uint32_t inputs = 16, outputs = 4;

  float weights[outputs * inputs] = {};

  // The threads of a worker run each handler together: each does every size-th part, from its rank on.
  GYRE_DEVICE void on(gyre::Context& ctx, view::Learn::Reader in, view::Learned::Builder out) {
    const auto given = in.getWeights();
    GYRE_CHECK(given.size() == outputs * inputs);
    for (uint32_t i = ctx.rank(); i < given.size(); i += ctx.size()) weights[i] = given[i];
    out.setOutputs(outputs);
  }

  GYRE_DEVICE void on(gyre::Context& ctx, view::Infer::Reader in, view::Scores::Builder out) {
    const auto features = in.getFeatures();
    GYRE_CHECK(features.size() == inputs);
    auto scores = out.initScores(outputs);
    for (uint32_t row = ctx.rank(); row < outputs; row += ctx.size()) {
      float sum = 0;
      for (uint32_t i = 0; i < inputs; ++i) sum += weights[row * inputs + i] * features[i];
      scores.set(row, sum);
    }
  }
};

}  // namespace notebook
"""

# %% Launch it.
if len(sys.argv) > 1:
    actors = gyre.Actors.load(sys.argv[1], schema={"notebook/scorer.capnp": SCHEMA})
else:
    actors = gyre.Actors.from_source(SOURCE, ["notebook::Scorer"], {"notebook/scorer.capnp": SCHEMA})
runtime = gyre.launch(actors, workers=1)
client = runtime.client()

# %% Give it weights: a message as a dict, once.
weights = numpy.random.default_rng(1).normal(size=(4, 16)).astype("f4")
print(client.ask("notebook::Scorer", 1, "Learn", {"weights": weights.ravel()}))

# %% Ask it often: a prepared ask, whose request and reply are arrays.
ask = client.prepare("notebook::Scorer", 1, "Infer", features=16)
features = numpy.linspace(-1, 1, 1600, dtype="f4").reshape(100, 16)
scores = numpy.empty((100, 4), "f4")
for row, of_row in zip(features, scores):
    ask.request.features[:] = row
    of_row[:] = ask().scores
print("as NumPy computes them:", numpy.allclose(scores, features @ weights.T, atol=1e-5))

# %% What goes wrong says what to do.
try:
    ask.request.features = numpy.zeros(8)
except gyre.BadArgument as error:
    print(error)
try:
    client.ask("notebook::Scorer", 2, "Infer", {"features": [1, 2]})
except gyre.Error as error:
    print(error)

# %% The end.
print("every message accounted for:", runtime.terminate()["balanced"])
runtime.close()
