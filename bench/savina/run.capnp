@0xe1a8081a9583255f;
# What every benchmark of gyre-bench savina shares. Its messages have one word: they fit the smallest slots.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::run");

# Told by the program: an instance begins. What the numbers count is the benchmark's to say.
struct Start {
  messages @0 :UInt32;
  actors @1 :UInt16;
  underWay @2 :UInt16;
}

# Told by an actor to itself: it goes on sending.
struct GoOn {
}

# Told by an instance to its collector: it has ended with that result.
struct Done {
  value @0 :UInt64;
}

# Told by a collector to collector 0: one more instance has ended.
struct Arrived {
}

struct ProgressRequest {  # asked of collector 0
}

struct Progress {
  done @0 :UInt64;        # instances that have ended
}

struct ValueRequest {     # asked of an instance's collector
}

struct Value {
  value @0 :UInt64;
}
