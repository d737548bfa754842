@0xd0c4a1f29b6e7358;
# The benchmark's messages: a number and a payload that come back as they were sent.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::messages");

struct EchoRequest {
  sequence @0 :UInt64;
  payload @1 :List(UInt64);
}

struct EchoResponse {
  sequence @0 :UInt64;
  payload @1 :List(UInt64);
}
