@0xb81f5d0c7a6e2394;
# Messages of the tests' actors that send to many.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_crowd");

# Lets a caller send `count` notes, 7 at most. crowd.hpp says by which of `kinds` each, and to whom.
struct Say {
  count @0 :UInt32;
  kinds @1 :UInt32;
  seed @2 :UInt64;
  # Of the notes that are told to one hearer: the keys 0 to `hearers` - 1.
  hearers @3 :UInt64;
  # Of those that are published: the numbers 0 to `topics` - 1.
  topics @4 :UInt64;
  # Words behind each note.
  filler @5 :UInt32;
  then @6 :Then;
  # The handler fails once it has sent them.
  fails @7 :Bool;
}
# What a hearer does with a note.
enum Then {
  nothing @0;
  leave @1;   # it unsubscribes from topic 0
  turn @2;    # it unsubscribes from topic 0 and subscribes again
  stop @3;    # it stops itself
}
# The number of the caller's next note.
struct Said {
  next @0 :UInt64;
}
struct Note {
  number @0 :UInt64;
  then @1 :Then;
  words @2 :List(UInt64);
}
# Of another message with the same topics.
struct Flash {
  number @0 :UInt64;
  then @1 :Then;
  words @2 :List(UInt64);
}
# Lets a hearer subscribe to `count` topics from `topic` on, or unsubscribe.
struct Listen {
  topic @0 :UInt64;
  count @1 :UInt32 = 1;
  ends @2 :Bool;
  flashes @3 :Bool;
  fails @4 :Bool;
  # Each topic is named again.
  twice @5 :Bool;
}
struct Listening {
}
struct HeardRequest {
}
struct Heard {
  notes @0 :UInt64;
  flashes @1 :UInt64;
  # Of the numbers.
  sum @2 :UInt64;
  # Numbers that did not come behind a smaller one of the same caller.
  unordered @3 :UInt64;
  # Notes of nobody known, or with other words than their caller gave them.
  wrong @4 :UInt64;
  # Replies that came for a caller that asks.
  replies @5 :UInt64;
}
# Passed on by a chatter to all chatters, `hops` times.
struct Chat {
  hops @0 :UInt32;
  # Each also creates another chatter.
  grows @1 :Bool;
  # By a topic, not by a broadcast.
  published @2 :Bool;
}
# Lets a chooser choose members of a pool for the numbers from `value` on.
struct Choose {
  first @0 :UInt64;
  size @1 :UInt32;
  value @2 :UInt64;
  count @3 :UInt32;
}
struct Chosen {
  keys @0 :List(UInt64);
  # For a name that both sides know.
  byName @1 :UInt64;
}
