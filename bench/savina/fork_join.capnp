@0x8bb01c9c2ec6a4f0;
# Messages of the benchmark fork-join-throughput.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::fork_join");

struct Work {
  seed @0 :UInt64;
}

# Told behind the last work of a row, to the worker that has it: say when it is done.
struct EndOfRow {
  forker @0 :UInt64;  # whom to tell
}

struct RowDone {
}

# Told behind a worker's last work: report what came out.
struct Finish {
  forker @0 :UInt64;  # whom to tell
}

# Told by a worker: it has ended.
struct Joined {
  value @0 :UInt64;
}
