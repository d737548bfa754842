@0xe8a2c5d17b90f346;
# Messages of the tests' actors that tell the host.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_telling");

# Lets an actor tell the host `count` numbers, from its next one on, each with a filler of `filler` elements.
# How many it could is its answer.
struct Speak {
  count @0 :UInt32;
  filler @1 :UInt32;
  # Its handler fails afterwards.
  fails @2 :Bool;
}
struct Spoken {
  told @0 :UInt32;
  refused @1 :UInt32;
  # What arrived from the host by Hear.
  answered @2 :UInt64;
}
# To the host.
struct Number {
  number @0 :UInt64;
  filler @1 :List(UInt64);
}
# To the host: of another type.
struct Remark {
  number @0 :UInt64;
}
# From the host.
struct Hear {
  number @0 :UInt64;
}
# Lets a chorus have `speakers` speakers from key 1 on tell `count` numbers each.
struct Conduct {
  speakers @0 :UInt32;
  count @1 :UInt32;
}
