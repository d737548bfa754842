@0xa8c3f05d7be41962;
# Messages of the tests' actor for buffers.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_test");

using Buffer = import "/gyre/messages/buffer.capnp";

enum Way {
  everyThread @0;
  lastThreadAlone @1;  # asks for the buffer; the others leave it alone
}

# Adds to each element of a buffer of UInt64.
struct Add {
  buffer @0 :Buffer.BufferHandle;
  amount @1 :UInt64;
  atLeast @2 :UInt64;
  way @3 :Way;
}

struct Sum {
  size @0 :UInt64;  # elements of the handle
  sum @1 :UInt64;   # of all elements, after
}

# The same as a tell.
struct Note {
  buffer @0 :Buffer.BufferHandle;
  amount @1 :UInt64;
}
