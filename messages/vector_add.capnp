@0xb1d3c6a4e2f7805d;
# The validation's messages: element-wise arithmetic on two vectors of 32-bit floats.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::messages");

enum Operation {
  add @0;
  subtract @1;
  multiply @2;
  divide @3;
}

struct VectorAddRequest {
  operation @0 :Operation;
  a @1 :List(Float32);
  b @2 :List(Float32);  # as many elements as a
}

struct VectorAddResponse {
  enum Error {
    none @0;
    lengthsDiffer @1;
    unknownOperation @2;
  }

  success @0 :Bool;
  error @1 :Error;
  processed @2 :UInt32;        # elements computed
  result @3 :List(Float32);    # processed elements: a[i] operation b[i]
  processingNs @4 :UInt64;     # time in the handler, ns, by the engine's clock
}
