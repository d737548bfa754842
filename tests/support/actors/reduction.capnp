@0xf3b60c9e27d158a4;
# Messages of the tests' reduction.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_reduction");

using Buffer = import "/gyre/messages/buffer.capnp";

# The sum of the first `length` elements, times `factor`.
struct Reduce {
  numbers @0 :Buffer.BufferHandle;  # Float32
  length @1 :UInt64;
  factor @2 :Float64;
}

struct Reduced {
  sum @0 :Float64;
  threads @1 :UInt64;  # that added
}
