@0xe4b17c5d92f8a360;
# Messages of the throughput benchmark: a word there and a word back, a 64-byte slot each.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_bench");

struct PingRequest {   # asked
  value @0 :UInt64;
}

struct PingResponse {
  value @0 :UInt64;    # ping_answer of the request's
}

struct SlowPing {      # asked
  value @0 :UInt64;
  ns @1 :UInt64;       # that its handler takes
}

struct Count {         # told
  value @0 :UInt64;
}

struct CountedRequest {
  sum @0 :Bool;        # ask for the sum, not the number
}

struct Counted {       # one word: it must fit the smallest slot
  value @0 :UInt64;    # messages told so far, or the sum of their values modulo 2^64
}
