@0xd7a31f0c5b2e8496;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("debugging");

struct Smooth {
  values @0 :List(Float32);
}

struct Smoothed {
  values @0 :List(Float32);  # the mean of each element and those before and after it
  sum @1 :Float32;           # of them all
}
