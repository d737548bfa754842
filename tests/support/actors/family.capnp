@0xc41f0a6d7be2935b;
# Messages of the tests' actors that create each other.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_family");

# A parent creates `count` children and tells each a number to double, by `way`; each child tells the double and
# stops itself. `first` is the number for the first child, each other gets one more.
struct Breed {
  count @0 :UInt32;
  first @1 :UInt64;
  way @2 :Way;
}
enum Way {
  directly @0;
  forwarded @1;
  # The parent itself stops them, in place of letting them work.
  stoppedAtOnce @2;
  # The handler fails when all is staged.
  failed @3;
}
struct Work {
  number @0 :UInt64;
}
struct Done {
  number @0 :UInt64;
  double @1 :UInt64;
  child @2 :UInt64;
}
struct Report {
}
struct Reported {
  done @0 :UInt64;
  wrong @1 :UInt64;
  numbers @2 :UInt64;
  lastChild @3 :UInt64;
  # Keys that a parent found not to be fresh.
  known @4 :UInt64;
}
# Of a child: whether it is there, and what it has done.
struct Look {
}
struct Looked {
  started @0 :UInt64;
  orphans @1 :UInt64;
}
