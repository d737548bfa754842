@0xb6f0d1c52a3e9417;
# What a program and its engine process say to each other, over a socket pair. The program asks, one request at a time;
# the engine process answers each in order. Copies are asked for elsewhere: copy_lane.hpp. By itself it sends its log, and that the workers died.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::process::control");

const version :UInt32 = 3;
# Of this file. Both sides come from one Gyre; another version is refused by name.

struct ToEngine {
  union {
    launch @0 :Launch;     # answered by `launched` with the descriptors of region and staging block, or `refused`
    judge @1 :Launch;      # answered by `judged` or `refused`
    start @2 :Bool;        # starts the workers on the initialised region, over BAR if true; answered by `done` or `refused`
    allocate @3 :Block;    # answered by `allocated`, with a descriptor if the memory is pinned, or `refused`
    release @4 :Block;     # not answered
    zero @5 :Span;         # answered by `done` or `refused`
    setEntry @6 :Entry;    # answered by `done` or `refused`
    mapBar @7 :UInt64;     # so many bytes of BarMemory, by the descriptor beside it; answered by `done` or `refused`
    barStored @8 :UInt32; # the program stored the test's lines, by this LineStore; answered by `done` or `refused`
    end @9 :Void;          # not answered: the process ends
    devices @10 :Void;     # answered by `devices` or `refused`
    import @11 :Import;    # memory of the program's, by the descriptor beside it or an IPC handle; answered by
                           # `imported` or `refused`
    export @12 :UInt64;    # a device block by its address; answered by `exported` with a descriptor, or `refused`
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
    imported @9 :UInt64;   # the address of the first byte on the engine's side
    exported @10 :Export;
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
  ahead @5 :List(CompiledAhead);
}

struct CompiledAhead {
  # A gyre::CompiledAhead.
  architecture @0 :Int32;
  block @1 :UInt32;
  inputs @2 :UInt64;
  kernel @3 :Text;
  loweredName @4 :Text;
  loweredDescription @5 :Text;
  compiler @6 :Text;
  cubin @7 :Data;          # empty: of another set or block than the launch's
}

struct Header {
  name @0 :Text;
  text @1 :Text;
}

struct LaunchOptions {
  # Those of gyre::Options that an engine reads.
  device @0 :Int32;
  workers @1 :UInt32;
  block @2 :UInt32;
  blocks @3 :UInt32;
  slots @4 :UInt32;
  slotBytes @5 :UInt32;
  arenaBytes @6 :UInt64;
  actorsPerWorker @7 :UInt32;
  maxBuffers @8 :UInt32;
  regionBudget @9 :UInt64;
  verbose @10 :Bool;
  cache @11 :Bool;
  keepProgram @12 :Text;
  firstLap @13 :UInt64;
  logLevel @14 :UInt32;
  spillBytes @15 :UInt64;
  bodyBytes @16 :UInt32;
  bodyPoolBytes @17 :UInt64;
}

struct Launched {
  device @0 :Text;
  deviceUuid @1 :Data;     # by which Vulkan knows the device
  compileMs @2 :Float64;
  fromCache @3 :Bool;
  description @4 :Data;    # write_description(), as the compiled module has it
  regionBytes @5 :UInt64;
  stagingBytes @6 :UInt64;
  actorBytes @7 :UInt64;
  moduleBytes @8 :UInt64;
  bufferTableBytes @9 :UInt64;
  registerMs @10 :Float64; # to lock the region's pages
  multiprocessors @11 :UInt32;  # that the workers may occupy; under MPS a part of the device's
  compiledAhead @12 :Bool; # the kernel is one of Actors.ahead
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

struct Import {
  base @0 :UInt64;         # the allocation's address in the program
  id @1 :UInt64;           # tells it from an earlier allocation at that address
  allocationBytes @2 :UInt64;
  offset @3 :UInt64;       # of what is imported, in the allocation
  bytes @4 :UInt64;
  ipcHandle @5 :Data;      # a CUipcMemHandle; empty: a descriptor is beside the message
}

struct Export {
  allocationBytes @0 :UInt64;  # of all that the descriptor stands for
  offset @1 :UInt64;       # of the block in it
}

struct Span {
  address @0 :UInt64;      # on the device
  bytes @1 :UInt64;
}

struct Entry {
  index @0 :UInt32;
  bytes @1 :Data;          # a BufferEntry
}
