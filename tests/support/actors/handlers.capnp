@0xb7d4e91c3a5f8062;
# Messages of the tests' actors for what handlers can use: scratch memory and matrices.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_handlers");

using Buffer = import "/gyre/messages/buffer.capnp";

# Fills scratch memory with `count` elements that follow from `seed`, and with `more` others.
struct Fill {
  seed @0 :UInt64;
  count @1 :UInt32;
  more @2 :UInt32;
}

struct Filled {
  sum @0 :UInt64;         # of the elements, read by other threads than wrote them
  moreSum @1 :UInt64;
  apart @2 :UInt32;       # bytes from the first elements to the others
  misaligned @3 :UInt32;  # 0: both are aligned to 16 bytes
  threads @4 :UInt32;
}

# Multiplies a matrix in a buffer with a vector.
struct Multiply {
  matrix @0 :Buffer.BufferHandle;
  rows @1 :UInt32;
  columns @2 :UInt32;
  bias @3 :Bool;     # the buffer has a bias for each row behind the matrix
  shifted @4 :Bool;  # the vector lies at no multiple of 16 bytes
  vector @5 :List(Float32);
}

struct Product {
  values @0 :List(Float32);
}

# Counts itself among its actor's messages, and wants its list back, each number and one.
struct Join {
  number @0 :UInt64;
  way @1 :Way;
  filler @2 :UInt32;  # how many numbers the reply has behind the list's
  list @3 :List(UInt64);
}

enum Way {
  answer @0;
  fail @1;             # alone, with its number as the code
  failInOneThread @2;
  failAll @3;          # all messages of its batch
}

struct Joined {
  count @0 :UInt64;     # of the actor's messages so far, this one counted
  together @1 :UInt32;  # messages of its batch; 1: it was alone
  place @2 :UInt32;     # in its batch
  list @3 :List(UInt64);
}

# A tell to the same actor.
struct Leave {
  number @0 :UInt64;
  fails @1 :Bool;
}

struct Attend {}

struct Attended {
  joined @0 :UInt64;
  left @1 :UInt64;
  sum @2 :UInt64;       # of the numbers of those that left
  together @3 :UInt32;  # most that left in one batch
}

# Holds the worker until the buffer's first element is not 0.
struct Detain {
  flag @0 :Buffer.BufferHandle;
}

struct Freed {}
