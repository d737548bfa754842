@0xc8c73cb4dc7a7842;
# Messages of the benchmark fork-join-create.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::create");

# Creates a task, which does this work.
struct Work {
  forker @0 :UInt32;  # whom to tell
  seed @1 :UInt32;
}

struct Joined {
  value @0 :UInt64;
}
