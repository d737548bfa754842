@0xd2c84f16b7a93e05;
# Samples that travel in the messages themselves, through the arena where they do not fit a slot.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("recording");

struct ToneRequest {  # a small request with a large reply
  samples @0 :UInt32;
  step @1 :Float32;
}

struct Tone {
  samples @0 :List(Float32);
}

struct EnergyRequest {  # a large request with a small reply
  samples @0 :List(Float32);
}

struct Energy {
  energy @0 :Float64;
}
