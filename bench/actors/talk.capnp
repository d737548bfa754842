@0x9d3f6a70c25be184;
# Messages of the actors of gyre-bench actors: of one word each, so that they fit the smallest slots.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_bench");

# Told: from now on a talker passes on what it gets to `other`. The first talker passes `passes` messages to and fro.
struct Talk {
  other @0 :UInt32;
  passes @1 :UInt32;   # an even number; 0 for the second talker
}

# Told: goes to and fro between two talkers, until `left` is 0.
struct Pass {
  left @0 :UInt32;
  value @1 :UInt32;    # passed_value of the one before
}

struct PassedRequest { # asked
  time @0 :Bool;       # ask for the time, not the value
}

struct Passed {
  value @0 :UInt64;    # of the last pass, or nanoseconds from the first pass to the last; 0 while it has not come
}

# Told: a sender tells tallies `numbers` numbers, at least 1, from its key times 2^32 on.
struct Flood {
  numbers @0 :UInt32;
  tallies @1 :UInt32;  # with keys from 0
}

# Told by a sender to itself: it goes on.
struct GoOn {
}
