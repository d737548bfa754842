@0xc773ef9d4274e2bf;
# Messages of the benchmark counting.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::counting");

struct Increment {
}

# Asked behind a row of increments: what was counted.
struct Retrieve {
}

struct Counted {
  count @0 :UInt64;
}
