@0xbd5846d03c239ac0;
# Messages of the benchmark big.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::big");

# Told by the sink: a peer begins.
struct Begin {
  messages @0 :UInt16;
  actors @1 :UInt16;
  underWay @2 :UInt16;
}

# A ping of a row, behind which others come.
struct Ping {
  from @0 :UInt32;    # the sender's key
  number @1 :UInt16;  # of the sender's pings, from 0
}

# The last ping of a row: all of them are answered.
struct LastPing {
  from @0 :UInt32;
  number @1 :UInt16;
  first @2 :UInt16;   # the number of the row's first ping
}

# The answer to a ping, behind which others come.
struct Pong {
  number @0 :UInt16;  # the ping's
}

# The last one of a row.
struct LastPong {
  number @0 :UInt16;
}

# Told by a peer: all its pings were answered.
struct Answered {
}

# Told by the sink: no more pings come; report.
struct Report {
}

# Told by a peer: what it received.
struct Received {
  value @0 :UInt64;
}
