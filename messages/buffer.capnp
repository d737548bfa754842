@0xc7d1f04e8a25b396;
# How a message names a buffer: memory of the engine's that lasts longer than a message.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::messages");

enum ElementType {
  none @0;
  int8 @1;
  uint8 @2;
  int16 @3;
  uint16 @4;
  int32 @5;
  uint32 @6;
  int64 @7;
  uint64 @8;
  float32 @9;
  float64 @10;
}

# Filled by gyre::Buffer::set, good until that buffer is freed. Workers check every field.
struct BufferHandle {
  index @0 :UInt32;
  generation @1 :UInt32;   # of the uses of that index
  runtime @2 :UInt32;      # whose buffer it is
  element @3 :ElementType;
  length @4 :UInt64;       # elements, from the buffer's first; at most the buffer's own
}
