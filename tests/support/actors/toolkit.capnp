@0xd9a1c7f05e2b8463;
# Messages of the tests' actors that use the CUDA toolkit.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_toolkit");

struct Numbers {
  values @0 :List(UInt32);
}

# What was computed of them, by how many threads.
struct Results {
  values @0 :List(UInt32);
  sum @1 :UInt64;
  threads @2 :UInt64;
}

struct Number {
  value @0 :UInt64;
}

struct Pair {
  a @0 :List(Float32);
  b @1 :List(Float32);
}

struct Product {
  values @0 :List(Float32);
}
