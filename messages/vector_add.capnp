@0xb1d3c6a4e2f7805d;
# The validation's messages: element-wise arithmetic on two vectors of 32-bit floats, in the message or in buffers.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::messages");

using Buffer = import "/gyre/messages/buffer.capnp";

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

  # Where aBuffer is set, the elements are in buffers of Float32, not in the lists.
  length @3 :UInt64;    # elements
  aBuffer @4 :Buffer.BufferHandle;
  bBuffer @5 :Buffer.BufferHandle;
  resultBuffer @6 :Buffer.BufferHandle;  # may be one of the other two
}

struct VectorAddResponse {
  enum Error {
    none @0;
    lengthsDiffer @1;
    unknownOperation @2;
  }

  success @0 :Bool;
  error @1 :Error;
  processed @2 :UInt32;        # elements computed; 2^32 - 1 where there were more
  result @3 :List(Float32);    # processed elements: a[i] operation b[i]; empty where they went to a buffer
  processingNs @4 :UInt64;     # time in the handler, ns, by a Stopwatch; of errors too
}
