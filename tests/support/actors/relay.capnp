@0xd1f0c6a2b8e94375;
# Messages of the tests' actors that send to each other.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_relay");

# Sends `count` notes, to the sinks `sink`, `sink` + `stride`, …, and ends as `end` says.
struct Burst {
  sink @0 :UInt64;
  stride @1 :UInt32;
  count @2 :UInt32;
  filler @3 :UInt32;  # numbers in each note
  end @4 :End;
  each @5 :Bool;      # each note is built by a thread of its own
}
enum End {
  well @0;
  failAll @1;
  failInOneThread @2;
  sendOneTooMany @3;
  sendTooLarge @4;
  sendToStranger @5;
}
struct Sent {
  count @0 :UInt32;
}

# Goes on to the relay `stride` further on, `hops` times, and then to a sink as a note.
struct Hop {
  sink @0 :UInt64;
  stride @1 :UInt32;
  hops @2 :UInt32;
  number @3 :UInt64;
}

# The `number`-th note of one relay to one sink.
struct Note {
  relay @0 :UInt64;
  number @1 :UInt64;
  filler @2 :List(UInt64);
}

# Goes from node to node of a graph: each node sends `copies` on, until `hops` is 0.
struct Spread {
  from @0 :UInt64;    # the node that sent it; the number of nodes: the host
  number @1 :UInt64;  # of messages from there to this node
  hops @2 :UInt32;
  copies @3 :UInt32;
  nodes @4 :UInt32;   # keys 0 to nodes - 1
  graph @5 :Graph;
}
enum Graph {
  ring @0;      # each to the next
  star @1;      # all to node 0, which sends to each of the others
  allToAll @2;  # each to each
  random @3;    # each to four that its key chooses
  itself @4;
}

struct Count {
}
struct Counted {
  notes @0 :UInt64;
  wrong @1 :UInt64;   # notes of another number than the next, or of other content
  fillers @2 :UInt64; # numbers in all notes
}
struct Visited {
  visits @0 :UInt64;
  wrong @1 :UInt64;    # messages that came before an earlier one of their sender, or twice
  missing @2 :UInt64;  # messages that never came before a later one of their sender
}
