@0xb7d4e91c3a5f8062;
# Messages of the tests' actors for what handlers can use: scratch memory and matrices.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_handlers");

using Buffer = import "/gyre/messages/buffer.capnp";

# Fills scratch memory with `count` elements that follow from `seed`, and with `more` others.
struct Fill {
  seed @0 :UInt64;
  count @1 :UInt32;
  more @2 :UInt32;
}

struct Filled {
  sum @0 :UInt64;         # of the elements, read by other threads than wrote them
  moreSum @1 :UInt64;
  apart @2 :UInt32;       # bytes from the first elements to the others
  misaligned @3 :UInt32;  # 0: both are aligned to 16 bytes
  threads @4 :UInt32;
}

# Multiplies a matrix in a buffer with a vector.
struct Multiply {
  matrix @0 :Buffer.BufferHandle;
  rows @1 :UInt32;
  columns @2 :UInt32;
  bias @3 :Bool;     # the buffer has a bias for each row behind the matrix
  shifted @4 :Bool;  # the vector lies at no multiple of 16 bytes
  vector @5 :List(Float32);
}

struct Product {
  values @0 :List(Float32);
}
