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

  text @44 :Text;
  textDefault @45 :Text = "by default";
  data @46 :Data;
  dataDefault @47 :Data = 0x"00 ff 80";
  point @48 :Point;
  pointDefault @49 :Point = (x = -5, label = "origin");
  tree @50 :Tree;
  swatch @51 :Enums.Swatch;

  bits @52 :List(Bool);
  voids @53 :List(Void);
  texts @54 :List(Text);
  datas @55 :List(Data);
  points @56 :List(Point);
  swatches @57 :List(Enums.Swatch);
  rows @58 :List(List(Float32));
  textRows @59 :List(List(Text));
  bitRows @60 :List(List(Bool));
  pointCubes @61 :List(List(List(Point)));
  f32sDefault @62 :List(Float32) = [1.5, -2, inf];
  bitsDefault @63 :List(Bool) = [true, false, true];
  textsDefault @64 :List(Text) = ["one", "", "three"];
  pointsDefault @65 :List(Point) = [(x = 1), (y = 2, label = "two"), ()];
  rowsDefault @66 :List(List(Int16)) = [[1, -2], [], [3]];
  emptyDefault @67 :Text = "";

  place :group {
    line @68 :UInt32;
    column @69 :UInt16 = 3;
    file @70 :Text;
    view :group {  # a name that the generated code uses too
      folded @71 :Bool;
      colour @72 :Colour = green;
    }
  }

  shape :union {
    none @73 :Void;
    circle @74 :Float64;
    caption @75 :Text = "caption";
    box :group {
      width @76 :UInt32 = 10;
      height @77 :Float32;
      tags @78 :List(Text);
      open @79 :Bool;
      corner :union {
        sharp @80 :Void;
        radius @81 :Float32;
      }
    }
    corners @82 :List(Point);
    centre @83 :Point;
    filled @84 :Bool = true;
  }

  union {
    unset @85 :Void;
    number @86 :Int64 = 5;
    word @87 :Text;
    pair :group {
      first @88 :UInt8;
      second @89 :UInt8 = 2;
    }
    trees @90 :List(Tree);
    bytes @91 :Data;
  }

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

struct Point {
  x @0 :Int32;
  y @1 :Int32 = 7;
  label @2 :Text;
}

# Has itself as a field.
struct Tree {
  value @0 :UInt32;
  left @1 :Tree;
  children @2 :List(Tree);
}

# Have each other as fields.
struct Ping {
  rally @0 :UInt32;
  pong @1 :Pong;
  end :union {
    open @2 :Void;
    lost @3 :Ping;
  }
}
struct Pong {
  ping @0 :Ping;
}

# What a struct and the elements of lists became; kinds_old.capnp has what they were.
struct Evolved {
  numbers @0 :List(Number);
  names @1 :List(Name);
  rows @2 :List(Row);
  places @3 :List(Place);
  place @4 :Place;
  choice :union {
    plain @5 :UInt16;
    rich @6 :Place;
  }
  added @7 :Text = "added";

  struct Number {
    value @0 :Int32;
    note @1 :Text;
  }
  struct Name {
    text @0 :Text;
    rank @1 :UInt8 = 9;
  }
  struct Row {
    cells @0 :List(Int16);
    height @1 :Float64;
  }
  struct Place {
    x @0 :Int16;
    y @1 :Int64 = -1;
    label @2 :Text;
    notes @3 :List(Text);
  }
}
