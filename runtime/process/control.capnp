@0xb6f0d1c52a3e9417;
# What a program and its engine process say to each other, over a socket pair. The program asks, one request at a time;
# the engine process answers each in order. By itself it sends its log, and that the workers died.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::process::control");

const version :UInt32 = 1;
# Of this file. Both sides come from one Gyre; another version is refused by name.

struct ToEngine {
  union {
    launch @0 :Launch;     # answered by `launched` with the descriptors of region, staging block and BAR, or `refused`
    judge @1 :Launch;      # answered by `judged` or `refused`
    start @2 :Bool;        # starts the workers on the initialised region, over BAR if true; answered by `done` or `refused`
    allocate @3 :Block;    # answered by `allocated`, with a descriptor if the memory is pinned, or `refused`
    release @4 :Block;     # not answered
    copyIn @5 :Copy;       # from the staging block; answered by `done` or `refused`
    copyOut @6 :Copy;      # to the staging block; answered by `done` or `refused`
    zero @7 :Copy;         # answered by `done` or `refused`
    setEntry @8 :Entry;    # answered by `done` or `refused`
    barStored @9 :UInt32;  # the program stored the test's lines, by this LineStore; answered by `done` or `refused`
    end @10 :Void;         # not answered: the process ends
    devices @11 :Void;     # answered by `devices` or `refused`
  }
}

struct FromEngine {
  union {
    hello @0 :Hello;       # first, by itself
    launched @1 :Launched;
    judged @2 :Text;       # what the device rules out, a line each; empty if nothing
    done @3 :Void;
    allocated @4 :UInt64;  # the block's address on the device
    refused @5 :Refusal;
    failed @6 :Text;       # by itself: why the workers died
    log @7 :LogLine;       # by itself
    devices @8 :List(UInt32);  # the multiprocessors of each CUDA device; empty also where there is no driver
  }
}

struct Hello {
  version @0 :UInt32;
  gyre @1 :Text;           # the version of Gyre
  regionVersion @2 :UInt32;
}

struct Launch {
  actors @0 :Actors;
  options @1 :LaunchOptions;
  runtimeTag @2 :UInt32;   # in the handles of the runtime's buffers
}

struct Actors {
  types @0 :List(Text);
  headers @1 :List(Header);
  actorHeaders @2 :List(Text);  # those that a kernel includes
  gridScoped @3 :Bool;
  description @4 :Data;    # write_description(); empty while only the compiled module knows it
}

struct Header {
  name @0 :Text;
  text @1 :Text;
}

struct LaunchOptions {
  # Those of gyre::Options that an engine reads.
  device @0 :Int32;
  transport @1 :UInt32;
  workers @2 :UInt32;
  block @3 :UInt32;
  blocks @4 :UInt32;
  slots @5 :UInt32;
  slotBytes @6 :UInt32;
  arenaBytes @7 :UInt64;
  actorsPerWorker @8 :UInt32;
  maxBuffers @9 :UInt32;
  regionBudget @10 :UInt64;
  verbose @11 :Bool;
  cache @12 :Bool;
  keepProgram @13 :Text;
  firstLap @14 :UInt64;
  logLevel @15 :UInt32;
}

struct Launched {
  device @0 :Text;
  transport @1 :UInt32;
  transportReason @2 :Text;
  compileMs @3 :Float64;
  fromCache @4 :Bool;
  description @5 :Data;    # write_description(), as the compiled module has it
  regionBytes @6 :UInt64;
  stagingBytes @7 :UInt64;
  barBytes @8 :UInt64;     # 0: not over BAR
  deviceUuid @9 :Data;     # of the device, by which Vulkan knows it; with BAR
  memoryType @10 :UInt32;  # Vulkan's, of the memory; with BAR
  actorBytes @11 :UInt64;
  moduleBytes @12 :UInt64;
  bufferTableBytes @13 :UInt64;
  registerMs @14 :Float64; # to lock the region's pages
  multiprocessors @15 :UInt32;  # that the workers may occupy; under MPS a part of the device's
}

struct Refusal {
  kind @0 :Kind;
  text @1 :Text;
  enum Kind {
    error @0;
    engineUnavailable @1;
    badOptions @2;
    noMemory @3;
  }
}

struct LogLine {
  level @0 :UInt32;        # a gyre::LogLevel
  text @1 :Text;
}

struct Block {
  kind @0 :UInt32;         # a gyre::MemoryKind
  address @1 :UInt64;
  bytes @2 :UInt64;
}

struct Copy {
  address @0 :UInt64;      # on the device
  bytes @1 :UInt64;
}

struct Entry {
  index @0 :UInt32;
  bytes @1 :Data;          # a BufferEntry
}
