@0x9a5acaee87248deb;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("ticker");

enum Outcome {
  done @0;
  listFull @1;            # the instrument has no room for another subscriber
  alreadySubscribed @2;
  notSubscribed @3;
}

struct Follow {           # asked of a subscriber
  instrument @0 :UInt64;
}

struct Unfollow {         # asked of a subscriber
  instrument @0 :UInt64;
}

struct Followed {         # the reply to both, once the instrument has answered
  outcome @0 :Outcome;
}

struct Subscribe {        # told to an instrument by a subscriber
  call @0 :UInt64;        # the program's ask
}

struct Unsubscribe {      # likewise
  call @0 :UInt64;
}

struct Answer {           # told to a subscriber by the instrument
  outcome @0 :Outcome;
  subscribed @1 :Bool;    # from now on
  next @2 :UInt64;        # the number of the next price
  call @3 :UInt64;        # of Subscribe or Unsubscribe
}

struct Price {            # told to an instrument by the program
  cents @0 :UInt32;
}

struct Tick {             # told by an instrument to each of its subscribers
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
