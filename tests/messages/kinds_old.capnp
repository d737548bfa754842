@0x9a53d17be0c2f864;
# An older Kinds: the first fields of kinds.capnp's, under the same numbers.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::test::old");

struct Kinds {
  boolean @0 :Bool;
  booleanDefault @1 :Bool = true;
  i8 @2 :Int8;
  i8Default @3 :Int8 = -128;
  i16 @4 :Int16;
  i16Default @5 :Int16 = -12345;
}

struct Evolved {
  numbers @0 :List(Int32);
  names @1 :List(Text);
  rows @2 :List(List(Int16));
  places @3 :List(Place);
  place @4 :Place;
  choice :union {
    plain @5 :UInt16;
    never @6 :Void;
  }

  struct Place {
    x @0 :Int16;
  }
}
