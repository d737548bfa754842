@0xb1c5f0a94e27d386;
# Messages of gyre-bench counters. Each has one word: they fit the smallest slots.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_counting");

# Told by the host and by senders: a counter adds the amount.
struct Increment {
  amount @0 :UInt32;
}

# Told by the host: whom a sender's increments are for. There are `senders` senders, with keys from 0, and `counters` counters.
struct Among {
  counters @0 :UInt32;
  senders @1 :UInt16;
  evenly @2 :Bool;     # each counter gets one of every `counters` increments; else each goes to a pseudo-random one
}

# Told by the host behind Among: a sender sends its share of all increments.
struct Start {
  increments @0 :UInt64;
}

# Told by a sender to itself: it goes on.
struct GoOn {
}

struct CountRequest {  # asked
}

struct Count {
  increments @0 :UInt32;
  sum @1 :UInt32;      # of the amounts, modulo 2^32
}
