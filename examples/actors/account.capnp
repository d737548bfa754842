@0xd4c1b7a3905e26f8;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("bank");

struct Deposit {       # told
  cents @0 :UInt64;
}

struct Withdraw {      # asked; fails where there is not so much
  cents @0 :UInt64;
}

struct Balance {
  cents @0 :UInt64;
  withdrawals @1 :UInt32;
}
