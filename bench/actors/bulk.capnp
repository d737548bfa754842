@0xc1d3a9e07b45f268;
# Messages of the payload benchmark: large lists in one direction, or in both.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_bench");

struct SumRequest {        # a list in, nothing to speak of out
  values @0 :List(UInt32);
}

struct SumResponse {
  sum @0 :UInt64;
}

struct CountUpRequest {    # nothing to speak of in, a list out
  first @0 :UInt32;
  count @1 :UInt32;
}

struct CountUpResponse {
  values @0 :List(UInt32); # first, first + 1, … modulo 2^32
}

struct InvertRequest {     # a list in, a list as long out
  values @0 :List(UInt32);
}

struct InvertResponse {
  values @0 :List(UInt32); # every bit of the request's inverted
}
