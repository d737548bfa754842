@0xe2f09d7c35a14b86;
# An enum and a struct that other schemas import.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::test::enums");

struct Palette {
  enum Colour {
    red @0;
    green @1;
    infraRed @2;
    default @3;  # a keyword in C++
  }
}

struct Swatch {
  colour @0 :Palette.Colour = green;
  name @1 :Text;
}
