@0xb7d05a9c41e8f263;
# Messages of the tests' actors whose errors leave no trace, and of those that use scratch memory.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_ledgers");

enum End {
  well @0;
  fail @1;              # with the code `amount`, in every thread
  failInOneThread @2;   # in the last
  check @3;             # a GYRE_CHECK that does not hold, in every thread
  checkInOneThread @4;
  goOn @5;              # Careful: whatever ctx.ok() says; what it said is in the reply
}

struct Entry {
  amount @0 :UInt64;
  end @1 :End;
  words @2 :UInt32;         # of the reply's filler
  late @3 :List(UInt64);    # read last
  note @4 :Text;            # and then this
}

struct Total {
  total @0 :UInt64;
  entries @1 :UInt64;
  threads @2 :UInt32;
  filler @3 :List(UInt64);  # k: total + k
}

struct Read {               # asked: the state, as it is
  words @0 :UInt32;         # as Entry's
}

struct Pick {               # asked: one thread decides which, all write
  seed @0 :UInt64;
  count @1 :UInt32;         # elements of scratch memory, of 8 bytes
  more @2 :UInt32;          # and of 4, in a second call
}

struct Picked {
  least @0 :UInt64;         # of what all threads wrote, found by one
  sum @1 :UInt64;           # of all elements, each read by another thread than wrote it
  moreSum @2 :UInt64;
  apart @3 :UInt32;         # bytes from the first call's memory to the second's
  misaligned @4 :UInt32;    # their addresses' low bits
  picks @5 :UInt64;         # by this actor
}
