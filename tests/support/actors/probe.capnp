@0xe5a1b7c83f0d4926;
# Messages of the tests' actor: it does what its messages say, so that tests can provoke every outcome.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_test");

enum Action {
  answer @0;            # value: 2 * argument + 1
  fail @1;              # handler failure with code argument
  grow @2;              # a response with argument words of filler
  work @3;              # work for argument nanoseconds, unless told to stop; value: 1 if told to stop
  sumOfNotes @4;        # value: sum of all notes this worker took
  echo @5;              # a response with the request's filler; value: its sum
  failAlone @6;         # a response with the request's filler, and then the last thread alone fails with code argument
  time @7;              # work for argument nanoseconds by the engine's clock; value: nanoseconds by a Stopwatch
  log @8;               # log a line with argument and the filler's size in one thread, argument / 1000 lines more
}

struct ProbeRequest {
  action @0 :Action;
  argument @1 :UInt64;
  filler @2 :List(UInt64);
}

struct ProbeResponse {
  value @0 :UInt64;
  key @1 :UInt64;
  filler @2 :List(UInt64);
}

struct ProbeNote {
  value @0 :UInt64;
  filler @1 :List(UInt64);  # added to the value
}
