@0xd5fb0945b63a6c93;
# What a feature store is asked.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("inference");

using Buffer = import "/gyre/messages/buffer.capnp";

# Gives a store its table. It is used by later messages, as long as the buffer is not freed.
struct UseTable {
  values @0 :Buffer.BufferHandle;  # of Float32; row after row
  width @1 :UInt32;                # values in a row
}

struct TableInUse {
  rows @0 :UInt64;
}

struct LookUp {
  rows @0 :List(UInt32);
}

struct Embeddings {
  values @0 :List(Float32);  # of each row asked for, in the request's order
}
