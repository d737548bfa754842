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
