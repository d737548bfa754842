@0xc6b4caa346e1f608;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("token");

struct Token {            # told to a player, who passes it on
  hops @0 :UInt64;        # that are left
}

struct Stopped {          # told to the referee, by the player who has the token at the end
  holder @0 :UInt64;
}

struct HolderRequest {}   # asked of the referee

struct Holder {
  known @0 :Bool;         # false while the token is passed on
  player @1 :UInt64;
}

struct PassesRequest {}   # asked of a player

struct Passes {
  count @0 :UInt64;
}
