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

struct Put {  # asked: writes one element of a buffer
  buffer @0 :Buffer.BufferHandle;
  place @1 :UInt64;
}

struct Count {  # told: adds to the actor's sum
  number @0 :UInt64;  # where it is divisible by 97, a GYRE_CHECK fails and nothing is added
}

struct AskForSum {
}

struct Sum {
  messages @0 :UInt64;
  sum @1 :UInt64;
}
