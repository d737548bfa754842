@0xb1f6c7d4a90e3852;
# Numbers in, the mean of all numbers so far out.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("averages");

struct Add {
  numbers @0 :List(Float64);
}

struct Mean {
  mean @0 :Float64;
  count @1 :UInt64;
}
