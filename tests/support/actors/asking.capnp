@0xb3a7d25c91e6f048;
# Messages of the tests' actors that ask each other.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_asking");

struct Get {
}
# Adds to a cell, which fails with code 3 where it would then hold less than nothing.
struct Add {
  amount @0 :Int64;
}
struct Value {
  amount @0 :Int64;
}

# Goes by the routers `router`, `router` - 1, …, 0 to a cell.
struct Route {
  cell @0 :UInt64;
}

# From one cell to another: asks both, and is answered then.
struct Transfer {
  from @0 :UInt64;
  to @1 :UInt64;
  amount @2 :Int64;
}
struct Transferred {
  left @0 :Int64;
  has @1 :Int64;
}

# Asks `count` cells from `first` on at once, or routers; the answer is the sum.
struct Sum {
  first @0 :UInt64;
  count @1 :UInt32;
  kind @2 :SumKind;
}
enum SumKind {
  cells @0;
  routers @1;   # whose key is 2, for the cells from `first` on
  keepers @2;   # that answer later
  strangers @3; # in no set
  gates @4;     # that no message creates
  myself @5;    # asks itself, with a count less by one
  tree @6;      # the same four times at once
}
struct Summed {
  sum @0 :Int64;
  replies @1 :UInt32;
  failures @2 :UInt32;
  status @3 :UInt32;  # of the last failure
  detail @4 :UInt32;
}

# Answered by a Release.
struct Hold {
  filler @0 :Data;
}
struct Release {
  amount @0 :Int64;
  helper @1 :UInt64;  # the helper that answers; 0: the keeper itself
  fail @2 :Bool;
  times @3 :UInt32;   # that it is answered: 2 at most
}
struct Pass {
  call @0 :UInt64;
  amount @1 :Int64;
  fail @2 :Bool;
}
struct Misuse {
  how @0 :Mistake;
}
enum Mistake {
  asksWithoutHandler @0;
  asksOneTooMany @1;
  promisesAnother @2;
  promisesTwice @3;
  failsAfterAsking @4;
  forwardsAnother @5;
}
