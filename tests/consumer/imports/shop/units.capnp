@0xa0c6d3e1b94f7258;
# Imported by absolute name from other folders.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shop");

enum Unit {
  piece @0;
  dozen @1;
}
