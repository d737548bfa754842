@0xf1c83d5a92b7e064;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("bank");

struct Change {           # asked of an account: adds to its balance
  amount @0 :Int64;       # below 0: takes from it
}

struct Balance {
  amount @0 :Int64;
}

struct Transfer {         # asked of a bank
  from @0 :UInt64;        # accounts
  to @1 :UInt64;
  amount @2 :Int64;       # above 0
}

struct Transferred {
  left @0 :Int64;         # in the account that paid
}
