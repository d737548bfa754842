@0xa3c7d37721d19871;
# Messages of the tests' actors whose bodies do not fit a slot.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_bodies");

# Has a sender do something `count` times, with loads of `words` numbers and more for each next one.
struct Order {
  how @0 :How;
  to @1 :UInt64;     # a store, a porter or a porter's store
  stride @2 :UInt32; # from one receiver to the next
  count @3 :UInt32;
  words @4 :UInt32;
  more @5 :UInt32;
  end @6 :End;
  delayNs @7 :UInt64;
}
enum How {
  tell @0;
  tellEach @1;
  timers @2;    # that send once
  periodic @3;
  cancelled @4; # timers that the same handler cancels
  cancelAll @5; # the timers that the sender has set
  tellPorter @6;
  tellModest @7;  # once
}
enum End {
  well @0;
  failAll @1;
  failInOneThread @2;
  sendTooLarge @3;
  sendTooMany @4;
}
struct Done {
  count @0 :UInt32;
}

# The `number`-th load of one sender to one store. Text and flags have gaps, which must be 0.
struct Load {
  sender @0 :UInt64;
  number @1 :UInt64;
  words @2 :List(UInt64);
  flags @3 :List(Bool);
  text @4 :Text;
  repeats @5 :Bool;  # it comes again and again, with one number
}
struct Count {
}
struct Counted {
  loads @0 :UInt64;
  wrong @1 :UInt64;  # of other content, or of another number than the next
  words @2 :UInt64;  # of all loads
}

# A response of `words` numbers, whatever its request.
struct Fetch {
  seed @0 :UInt64;
  words @1 :UInt32;
  fails @2 :Bool;
  filler @3 :List(UInt64);
}
struct Fetched {
  seed @0 :UInt64;
  words @1 :List(UInt64);
}
# A response as large as its request.
struct Mirror {
  seed @0 :UInt64;
  words @1 :List(UInt64);
  fails @2 :Bool;
}
struct Mirrored {
  seed @0 :UInt64;
  words @1 :List(UInt64);
}

# Has a sender ask a store, and answer with what it gets.
struct Ask {
  store @0 :UInt64;
  seed @1 :UInt64;
  words @2 :UInt32;
  mirrors @3 :Bool;  # asks by Mirror, else by Fetch
  fails @4 :Bool;
  tells @5 :Bool;    # answers with the number of words alone
  twice @6 :Bool;    # answers twice
  modest @7 :Bool;   # with `mirrors`: asks a modest actor
}
struct Answer {
  seed @0 :UInt64;
  count @1 :UInt32;
  wrong @2 :UInt32;
  status @3 :UInt32;
  words @4 :List(UInt64);
}
