@0xb258c89cdc3f64a4;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("pagerank");

struct Edges {             # told to a vertex before the first round
  to @0 :List(UInt32);     # where its edges lead
  incoming @1 :UInt32;     # edges that lead to it
}

struct Begin {}            # told to a vertex when all have their edges

struct Share {             # told by a vertex along each edge and to itself, once a round
  round @0 :UInt32;
  amount @1 :UInt64;
}

struct RankRequest {}      # asked of a vertex

struct Rank {
  rank @0 :UInt64;
  last @1 :Bool;           # after the last round
}
