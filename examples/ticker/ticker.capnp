@0x9a5acaee87248deb;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("ticker");

enum Outcome {
  done @0;
  alreadySubscribed @1;
  notSubscribed @2;
}

struct Follow {           # asked of a subscriber
  instrument @0 :UInt64;
  ends @1 :Bool;          # does not follow it any more
}

struct Followed {         # the reply, once the instrument has answered
  outcome @0 :Outcome;
}

struct Ask {              # told to an instrument by a subscriber
  call @0 :UInt64;        # the program's ask
}

struct Answer {           # told to a subscriber by the instrument
  next @0 :UInt64;        # the number of the next price
  call @1 :UInt64;        # of Ask
}

struct Price {            # told to an instrument by the program
  cents @0 :UInt32;
}

struct Tick {             # published by an instrument
  instrument @0 :UInt64;
  number @1 :UInt64;      # counts the instrument's prices from 0
  cents @2 :UInt32;
}

struct SeenRequest {      # asked of a subscriber
  instrument @0 :UInt64;
}

struct Seen {
  prices @0 :UInt64;
  last @1 :UInt32;
  checksum @2 :UInt64;
  gaps @3 :UInt64;        # prices that were missing, out of order or not subscribed to
}
