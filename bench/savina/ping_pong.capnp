@0xe2ecb711a4a43855;
# Messages of the benchmark ping-pong.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::ping_pong");

struct Ping {
  value @0 :UInt64;
}

struct Pong {
  value @0 :UInt64;  # mix() of the ping's
}
