@0xe1c4930ab57d2f86;
# Messages of the tests' actor that answers when its timer is due.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_alarm");

struct Wake {
  afterNs @0 :UInt64;
}
struct Woken {
  # How often the actor has been woken.
  times @0 :UInt64;
}
# Of the timer.
struct Due {
}
