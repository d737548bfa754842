@0xcbf1026ff9a9c590;
# Messages of the benchmark bank-transaction.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre_savina::bank");

# Told by a teller to the account that pays.
struct Transfer {
  to @0 :UInt16;      # the other account's number
  actors @1 :UInt16;  # accounts of the teller
  amount @2 :UInt32;
}

# Asked by the account that pays.
struct Deposit {
  amount @0 :UInt32;
}

struct Deposited {
  amount @0 :UInt32;
}

# Told by the account that pays to the teller.
struct Settled {
  failed @0 :Bool;
}

# Told by a teller: all transfers are settled; report.
struct Close {
  actors @0 :UInt16;
}

struct Balance {
  account @0 :UInt16;
  cents @1 :Int32;
}
