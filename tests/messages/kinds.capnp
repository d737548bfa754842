@0xc7d4f20a918e3b65;
# Every kind of field that the views cover, with and without a default.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gyre::test");

using Enums = import "kinds_enums.capnp";
using Colour = Enums.Palette.Colour;

const answer :UInt32 = 42;  # constants and annotations are ignored
annotation unit(field) :Text;

enum Shade {
  light @0;
  dark @1;
}

struct Kinds {
  boolean @0 :Bool;
  booleanDefault @1 :Bool = true;
  i8 @2 :Int8;
  i8Default @3 :Int8 = -128;
  i16 @4 :Int16;
  i16Default @5 :Int16 = -12345;
  i32 @6 :Int32 $unit("m");
  i32Default @7 :Int32 = -2147483648;
  i64 @8 :Int64;
  i64Default @9 :Int64 = -9223372036854775808;
  u8 @10 :UInt8;
  u8Default @11 :UInt8 = 255;
  u16 @12 :UInt16;
  u16Default @13 :UInt16 = 65535;
  u32 @14 :UInt32;
  u32Default @15 :UInt32 = 4294967295;
  u64 @16 :UInt64;
  u64Default @17 :UInt64 = 18446744073709551615;
  f32 @18 :Float32;
  f32Default @19 :Float32 = 0.1;
  f32Whole @20 :Float32 = -3;
  f32Infinite @21 :Float32 = inf;
  f32None @22 :Float32 = nan;
  f64 @23 :Float64;
  f64Default @24 :Float64 = 1e-300;
  f64Infinite @25 :Float64 = -inf;
  f64None @26 :Float64 = nan;
  colour @27 :Colour;
  colourDefault @28 :Colour = default;
  nothing @29 :Void;
  int @30 :Int32;          # a keyword in C++
  anHTTPCode @31 :UInt16;  # an acronym
  flag @32 :Bool;

  i8s @33 :List(Int8);
  i16s @34 :List(Int16);
  i32s @35 :List(Int32);
  i64s @36 :List(Int64);
  u8s @37 :List(UInt8);
  u16s @38 :List(UInt16);
  u32s @39 :List(UInt32);
  u64s @40 :List(UInt64);
  f32s @41 :List(Float32);
  f64s @42 :List(Float64);
  colours @43 :List(Colour);

  struct Nested {
    enum Shade {
      pale @0;
      deep @1;
    }
    own @0 :Shade = deep;
    outer @1 : .Shade = dark;
  }
}

struct Empty {}
