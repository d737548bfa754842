@0xd4a83c6e5b1972f0;
# The same file name in another folder.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("till::old");
using import "../rounding.capnp".Rounding;

struct OrderRequest {
  pieces @0 :UInt32;
  rounding @1 :Rounding;
}
