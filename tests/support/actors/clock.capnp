@0xd3b07a6c4e1f9258;
# Messages of the tests' actors that set timers.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_clock");

# Lets a clock set `count` timers, 8 at most, for bells. Timer i sends number `number` + i, after `delayNs` +
# i * `stepNs`, which may be below 0; a periodic one each `delayNs`.
struct Set {
  count @0 :UInt32;
  delayNs @1 :UInt64;
  stepNs @2 :Int64;
  periodic @3 :Bool;
  # The bell's key. Timer i is for the one with the key `bell` + i * `bellStep`.
  bell @4 :UInt64;
  bellStep @5 :UInt64;
  number @6 :UInt64;
  # The handler fails once it has set them.
  fails @7 :Bool;
}
# The timers' ids.
struct Started {
  timers @0 :List(UInt64);
}
# Lets a clock cancel a timer. The answer is empty.
struct Cancel {
  timer @0 :UInt64;
}
struct Cancelled {
}
# To a bell.
struct Ring {
  number @0 :UInt64;
}
# To a bell: what it heard.
struct HeardRequest {
}
struct Heard {
  count @0 :UInt64;
  sum @1 :UInt64;
  # The number that came last.
  last @2 :UInt64;
  # Numbers that did not come behind a smaller one.
  unordered @3 :UInt64;
  # Numbers that no clock sent.
  fromOthers @4 :UInt64;
}
# Lets a metronome send itself a tick each `periodNs`, until it has had `ticks` of them.
struct Begin {
  periodNs @0 :UInt64;
  ticks @1 :UInt64;
  # It stops itself at the last one.
  stops @2 :Bool;
}
struct Tick {
}
