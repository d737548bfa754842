@0xc95e1f7a3b80d264;
# A sibling's enum, and one that an import directory has.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("till");
using import "rounding.capnp".Rounding;
using import "/shop/units.capnp".Unit;

struct OrderRequest {
  amount @0 :UInt32;
  unit @1 :Unit;
  rounding @2 :Rounding;
}

struct OrderResponse {
  pieces @0 :UInt32;
  rounding @1 :Rounding;
}
