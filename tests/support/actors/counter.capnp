@0xa7f2d91c3b8e4605;
# Messages of the tests' actors with state.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_counters");

struct Add {          # asked: the sum so far
  amount @0 :UInt64;  # 13 fails a GYRE_CHECK
}

struct Increment {    # told
  amount @0 :UInt64;
}

struct Sum {
  value @0 :UInt64;
  key @1 :UInt64;        # of the actor, as its on_start saw it
  startedAt @2 :UInt64;  # the value that its on_start gave it
  group @3 :UInt32;      # threads that ran the handler
}

struct Numbered {     # told: a sender's messages are numbered from 1
  sender @0 :UInt32;  # below 8
  number @1 :UInt64;
}

struct HowOrdered {
}

struct Order {
  wrong @0 :UInt64;      # messages that did not follow their sender's last
  numbers @1 :UInt64;    # the sum of all senders' last numbers
}

struct Enter {
}
