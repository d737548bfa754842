@0xb7e2941c0d5f386a;
# Imported by its sibling.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("till");

enum Rounding {
  none @0;
  tens @1;
}
