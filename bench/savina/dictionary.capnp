@0xf2f2ed9729cc35b7;
# Messages of the benchmark concurrent-dictionary.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::dictionary");

# Told by the dictionary: a client begins.
struct Begin {
  messages @0 :UInt32;
  underWay @1 :UInt16;
}

# A request of a row, behind which others come.
struct Request {
  client @0 :UInt16;  # its number among those of the dictionary
  key @1 :UInt16;
  value @2 :UInt32;   # to write; 0: the entry is read
}

# The last request of a row: all of them are answered.
struct LastRequest {
  client @0 :UInt16;
  key @1 :UInt16;
  value @2 :UInt32;
}

# The answer to a request, behind which others come.
struct Answer {
  key @0 :UInt16;
  value @1 :UInt32;   # of the entry, after the request
}

# The last one of a row.
struct LastAnswer {
  key @0 :UInt16;
  value @1 :UInt32;
}

# Told by a client: all its requests were answered.
struct Leave {
  valid @0 :UInt32;   # answers that were possible
}
