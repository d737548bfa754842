@0x9d3f6a70c25be184;
# Messages between the actors of gyre-bench actors.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_bench");

# Told: goes to and fro between two talkers, until `left` is 0.
struct Pass {
  other @0 :UInt64;    # the talker that is next
  left @1 :UInt32;
  value @2 :UInt64;    # passed_value of the one before
  begunNs @3 :UInt64;  # when the first one was handled; 0: this is the first
}

struct PassedRequest { # asked
}

struct Passed {
  value @0 :UInt64;    # of the last pass; 0 while it has not come
  ns @1 :UInt64;       # from the first pass to the last
}

# Told: a sender tells a counter a number and goes on with the next, until `left` is 0.
struct Flood {
  left @0 :UInt32;
  number @1 :UInt64;
  counters @2 :UInt32; # with keys from 0
}
