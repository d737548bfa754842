@0xc5e2d83a17f49b60;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("faults");

enum Fault {
  none @0;
  nullPointer @1;  # writes through a null pointer
  trap @2;         # executes a trap
  check @3;        # fails a GYRE_CHECK
  endless @4;      # never returns
}

struct Provoke {
  fault @0 :Fault;
}

struct Survived {
  times @0 :UInt64;
}
