@0xc773ef9d4274e2bf;
# Messages of the benchmark counting.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::counting");

struct Increment {
}

# Told behind the last increment: report what was counted.
struct Retrieve {
}
