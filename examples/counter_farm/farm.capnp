@0xb93891397a56139b;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("farm");

struct Drive {           # told to a driver, by the program and by itself
  from @0 :UInt64;       # the increments that it sends: number `from`, up to `to` - 1
  to @1 :UInt64;
}

struct Increment {       # told to a counter
  by @0 :UInt32;
}

struct CountRequest {}   # asked of a counter

struct Count {
  increments @0 :UInt64;
  value @1 :UInt64;
}
