@0xc1b6e94d207af35b;
# Messages of the tests' actor whose messages are handled side by side.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_teams");

using Buffer = import "/gyre/messages/buffer.capnp";

enum Task {
  answer @0;
  grow @1;             # a reply of `number` words more
  fail @2;             # with the code `number`, in every thread
  failInOneThread @3;  # in the last
  check @4;            # a GYRE_CHECK that does not hold, in every thread
  checkInOneThread @5;
  askWhetherToStop @6;
}

struct Work {
  task @0 :Task;
  number @1 :UInt64;
}

struct Done {
  number @0 :UInt64;   # 3 * Work.number + 1
  threads @1 :UInt32;  # that ran the handler
  counted @2 :UInt32;  # the same, as a sum of 1 in each
  stopping @3 :Bool;
  filler @4 :List(UInt64);  # k: Work.number + k
}

struct Short {  # 4 packets
  number @0 :UInt64;
}

struct ShortDone {  # no more
  value @0 :UInt64;  # 64 * Short.number, and how many threads handled it
}

struct Long {  # 12 packets; answered with Done, whose number is the sum of these
  a @0 :UInt64;
  b @1 :UInt64;
  c @2 :UInt64;
  d @3 :UInt64;
  e @4 :UInt64;
  f @5 :UInt64;
  g @6 :UInt64;
  h @7 :UInt64;
  i @8 :UInt64;
  j @9 :UInt64;
  k @10 :UInt64;
  l @11 :UInt64;
}

struct Put {  # asked: writes one element of a buffer
  buffer @0 :Buffer.BufferHandle;
  place @1 :UInt64;
}

struct Hold {  # asked: answered once the buffer's first element is not 0
  buffer @0 :Buffer.BufferHandle;
}

struct Count {  # told: adds to the actor's sum
  number @0 :UInt64;  # where it is divisible by 97, a GYRE_CHECK fails and nothing is added
}

struct AskForSum {
}

struct Sum {
  messages @0 :UInt64;
  sum @1 :UInt64;
  byTeams @2 :UInt64;  # messages that less than the 32 threads of a warp handled
}
