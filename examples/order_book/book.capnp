@0xa50779def6af00b9;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("order_book");

enum Side {
  buy @0;
  sell @1;
}

enum Outcome {
  filled @0;              # all of it traded
  rests @1;               # what is left rests in the book
  bookFull @2;            # what is left was refused: that side of the book has no room
  tooManyTrades @3;       # what is left was refused: one order may not make more trades
  cancelled @4;
  unknownOrder @5;        # it does not rest in the book
}

struct Order {            # asked of a book
  id @0 :UInt64;
  trader @1 :UInt64;
  side @2 :Side;
  price @3 :UInt32;       # the highest of a buyer, the lowest of a seller
  quantity @4 :UInt32;
}

struct Cancel {           # asked of a book
  order @0 :UInt64;
}

struct Done {             # the reply to both
  outcome @0 :Outcome;
  trades @1 :UInt32;
  left @2 :UInt32;        # that rests, was refused or was cancelled
}

struct Trade {            # told to the program
  buyOrder @0 :UInt64;
  sellOrder @1 :UInt64;
  price @2 :UInt32;
  quantity @3 :UInt32;
}

struct Fill {             # told to both traders of a trade
  instrument @0 :UInt64;
  bought @1 :Int64;       # below 0: sold
  price @2 :UInt32;
}

struct RestingRequest {}  # asked of a book

struct Resting {          # the best first
  bids @0 :List(Order);
  asks @1 :List(Order);
}

struct AccountRequest {}  # asked of a trader

struct Account {
  fills @0 :UInt64;
  cash @1 :Int64;
  positions @2 :List(Int64);  # of each instrument
}
