@0x90dbee5d085776cd;
# What the sensors of a station measured, and what is said of it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("station");

enum Unit {
  celsius @0;
  fahrenheit @1;
}

struct Reading {
  sensor @0 :Text;
  value @1 :Float32;
  unit @2 :Unit;
  gain @3 :Float32 = 1;
}

struct SummaryRequest {
  readings @0 :List(Reading);
  limit :union {
    none @1 :Void;
    atMost @2 :Float32;  # degrees Celsius
  }
}

struct SummaryResponse {
  results @0 :List(Result);  # one a reading, in their order
  hottest @1 :Text;          # its sensor; null where there was no reading

  struct Result {
    celsius @0 :Float32;
    above @1 :Bool;  # the limit
  }
}

# A tell: what to add to all that is measured from now on, in degrees Celsius.
struct Calibration {
  offset @0 :Float32;
}
