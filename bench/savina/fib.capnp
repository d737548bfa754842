@0xb1defdc8c60bfc71;
# Messages of the benchmark fib.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::fib");

# Creates a node, which computes Fibonacci number `n`.
struct Compute {
  parent @0 :UInt32;  # whom to tell
  n @1 :UInt32;
}

# Told by a node to its parent.
struct Computed {
  value @0 :UInt64;
}
