@0x9d1f3b0a5c7e2846;
# A recording: the messages that a program sent, and what became of them. The file is a sequence of Records, each a
# Cap'n Proto message in the standard stream framing, unpacked. docs/reference/recordings.md explains it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::messages::recording");

const version :UInt32 = 1;
# Of this file. A reader refuses another one by name.

struct Record {
  union {
    header @0 :Header;          # first, and once
    sent @1 :Sent;
    outcome @2 :Outcome;        # behind what it is the outcome of
    relaunched @3 :Relaunched;  # workers, and their actors' state, begin anew
    end @4 :End;                # last; a program that ended without terminating its runtime leaves none
  }
}

struct Header {
  version @0 :UInt32;
  gyre @1 :Text;                # the version of Gyre that recorded
  device @2 :Text;              # as "NVIDIA H200"
  # What replaying needs of gyre::Options.
  workers @3 :UInt32;
  slotBytes @4 :UInt32;
  arenaBytes @5 :UInt64;
  maxReplyBytes @6 :UInt32;
  actorsPerWorker @7 :UInt32;
  spillBytes @8 :UInt64;
  handlers @9 :List(Handler);
  bodyBytes @10 :UInt32 = 32768;
  bodyPoolBytes @11 :UInt64;
}

struct Handler {
  actor @0 :Text;               # the actor type's qualified name
  message @1 :Text;             # the request's name in its schema; empty: unknown
  actorType @2 :UInt16;         # the numbers that messages have here
  messageType @3 :UInt16;
  request @4 :UInt64;           # type ids of the schemas
  response @5 :UInt64;          # 0: takes tells only
}

enum Kind {
  ask @0;
  tell @1;
  receipt @2;                   # a tell whose sender learns what became of it
}

struct Sent {
  number @0 :UInt64;            # from 0 on, in the order of the file
  kind @1 :Kind;
  worker @2 :UInt32;
  ticket @3 :UInt64;            # the worker takes messages in the order of their tickets
  actorType @4 :UInt16;
  messageType @5 :UInt16;       # 0xffff: starts the actor, 0xfffe: stops it
  key @6 :UInt64;
  timeNs @7 :UInt64;            # since the recording began
  timeoutNs @8 :Int64;          # of an ask, or of the wait for a receipt
  expiresAfterNs @9 :Int64;     # of a tell; 0: never
  body @10 :Data;               # one unpacked segment
}

struct Outcome {
  number @0 :UInt64;            # of the message
  timeNs @1 :UInt64;
  status @2 :UInt32;            # gyre::Status; 0: the body is the response
  detail @3 :UInt32;            # as gyre::Failure has it
  body @4 :Data;                # one unpacked segment
}

struct Relaunched {
  timeNs @0 :UInt64;
}

struct End {
  timeNs @0 :UInt64;
  sent @1 :UInt64;              # Records of each kind in the file
  outcomes @2 :UInt64;
  dropped @3 :UInt64;           # what the program sent, and outcomes, that found no room on their way to the file
}
