@0x9f3e6b20c8d75a14;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("market");

struct Order {             # asked of a Book: rests there
  id @0 :UInt64;
  note @1 :Text;
}

struct Resting {           # every order that rests there now
  ids @0 :List(UInt64);
}

struct Basket {            # asked of a Stock: takes one of each kind, or nothing
  kinds @0 :List(UInt8);
}

struct Left {
  pieces @0 :UInt32;       # of all kinds
}

struct Bids {              # asked of an Auction: bid i is for quantities[i] at prices[i]
  supply @0 :UInt64;
  prices @1 :List(UInt32);
  quantities @2 :List(UInt32);
}

struct Allotments {
  price @0 :UInt32;        # the lowest that gets anything
  quantities @1 :List(UInt32);
}
