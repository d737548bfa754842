@0xf3a75be20c91d846;
# What is done to samples that lie in a buffer.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("recording");

using Buffer = import "/gyre/messages/buffer.capnp";

struct ScaleRequest {
  samples @0 :Buffer.BufferHandle;  # of Float32
  factor @1 :Float32 = 1;
}

struct ScaleResponse {
  scaled @0 :UInt64;  # samples
}
