@0xe83b7d52c1f4a096;
# An enum of Gyre's own messages; and by its absolute name, one of a schema of the same target.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("till");
using import "/gyre/messages/vector_add.capnp".Operation;
using import "/till/schemas/rounding.capnp".Rounding;

struct AdjustRequest {
  operation @0 :Operation;
  by @1 :Int32;
  prices @2 :List(Int32);
  rounding @3 :Rounding;
}

struct AdjustResponse {
  operation @0 :Operation;
  prices @1 :List(Int32);
}
