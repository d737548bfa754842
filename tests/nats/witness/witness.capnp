@0xd2f0a6c1b7e35948;
# What the tests of nodes that fail ask and tell.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("witness");

struct Act @0xf3b06c2a9d5e4871 {
  id @0 :UInt64;  # no two messages have the same
  sleepUs @1 :UInt32;  # how long the handler takes
  fail @2 :Bool;
}

struct Acted {
  began @0 :UInt64;  # when the actor handled its first message, since its state began, in ns
  count @1 :UInt64;  # of messages that it has handled
}
