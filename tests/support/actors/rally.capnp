@0xe20020cc62e2ac65;
# Messages of the tests' two players, which need each other.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_rally");

# Passed on to the other player, `strokes` times more.
struct Ball {
  strokes @0 :UInt64;
}

struct ScoreRequest {
}
struct Score {
  strokes @0 :UInt64;   # balls that the player had
  strangers @1 :UInt64; # those of them that the other player did not send
  rests @2 :UInt64;
}

# Forwarded to the other player.
struct OthersScoreRequest {
}

# Answered when the other player has been asked for its score.
struct BothScoresRequest {
}
struct BothScores {
  own @0 :UInt64;
  others @1 :UInt64;
}

# A player tells itself.
struct Rest {
}
