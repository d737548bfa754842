@0xd0c1f2a3b4958671;
# The first revision of a schema; revision_2.capnp is what became of it. The structs keep their ids.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_revisions");

struct Order @0xb1e5a3c7d9f01234 {
  number @0 :UInt64;
  amounts @1 :List(Int32);
  place @2 :Place;
  delivery :union {
    post @3 :UInt16;
    collected @4 :Void;
  }
}

struct Place @0xa7c3e1f5b9d24680 {
  x @0 :Int16;
}

struct Receipt @0xc9d7b5a3e1f08642 {
  number @0 :UInt64;
  total @1 :Int64;
  amounts @2 :List(Int32);  # twice what was ordered
  place @3 :Place;          # one further
  delivery :union {
    post @4 :UInt16;  # plus 1000
    collected @5 :Void;
  }
  deliveryUnderstood @6 :Bool = true;
}
