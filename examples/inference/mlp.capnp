@0x83236a1242380e76;
# What the networks and the feature store are asked.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("inference");

using Buffer = import "/gyre/messages/buffer.capnp";

# Gives a network its parameters. They are used by later messages, as long as the buffer is not freed.
struct UseWeights {
  # Layer after layer: the weights, output by output, and then the biases. Float32 for Mlp, bfloat16 as
  # UInt16 or Int16 for LargeMlp.
  weights @0 :Buffer.BufferHandle;
}

struct WeightsInUse {
  parameters @0 :UInt32;
}

struct InferRequest {
  features @0 :List(Float32);  # row after row; 1 to 16 rows
}

struct Scores {
  scores @0 :List(Float32);  # row after row
}
