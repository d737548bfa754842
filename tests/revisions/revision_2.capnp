@0xe3f4a5b6c7d89012;
# The second revision of a schema: revision_1.capnp with fields, a union member and longer structs added, and a
# list of numbers made one of structs.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_revisions");

struct Order @0xb1e5a3c7d9f01234 {
  number @0 :UInt64;
  amounts @1 :List(Amount);
  place @2 :Place;
  delivery :union {
    post @3 :UInt16;
    collected @4 :Void;
    courier @5 :Text;
  }
  priority @6 :UInt8 = 3;
  weight @7 :Float64;
  note @8 :Text = "no note";
}

struct Amount @0xd5e3f1a7b9c86420 {
  value @0 :Int32;
  unit @1 :Text;
}

struct Place @0xa7c3e1f5b9d24680 {
  x @0 :Int16;
  y @1 :Int64 = -1;
  label @2 :Text;
}

struct Receipt @0xc9d7b5a3e1f08642 {
  number @0 :UInt64;
  total @1 :Int64;
  amounts @2 :List(Amount);  # twice what was ordered, in the same units
  place @3 :Place;           # one further
  delivery :union {
    post @4 :UInt16;  # plus 1000
    collected @5 :Void;
    courier @7 :Text;
  }
  deliveryUnderstood @6 :Bool = true;
  priority @8 :UInt8 = 9;   # one more
  weight @9 :Float64 = 0.5; # the same
  note @10 :Text = "none given";
}
