#!/bin/sh
# What capnpc-gyre refuses, how it says so, and that it then writes nothing.
# Use: compiler_test.sh CAPNP CAPNPC_GYRE
set -u
capnp=$1
plugin=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/in" "$work/out"
failures=0

# schema NAME < TEXT: writes NAME.capnp, under a namespace, ready to compile.
schema() {
  {
    echo '@0xd1f0a3b5c7e92846;'
    echo 'using Cxx = import "/capnp/c++.capnp";'
    echo '$Cxx.namespace("test");'
    cat
  } >"$work/in/$1.capnp"
}

compile() {
  rm -rf "$work/out" && mkdir "$work/out"
  "$capnp" compile -o"$plugin:$work/out" --src-prefix="$work/in" "$work/in/$1.capnp" >"$work/log" 2>&1
}

fail() {
  echo "FAILED: $1"
  sed 's/^/  | /' "$work/log"
  failures=$((failures + 1))
}

# refuses NAME PATTERN...: compiling fails, one line says each pattern, and nothing is written.
refuses() {
  name=$1
  shift
  if compile "$name"; then fail "$name.capnp was accepted"; fi
  for pattern; do
    grep -q "^capnpc-gyre: $name.capnp: .*$pattern" "$work/log" || fail "$name.capnp: no line says '$pattern'"
  done
  [ "$(grep -c '^capnpc-gyre: ' "$work/log")" -eq $# ] || fail "$name.capnp: not $# lines, one an offence"
  [ -z "$(ls "$work/out")" ] || fail "$name.capnp: something was written"
}

accepts() {
  compile "$1" || fail "$1.capnp was refused"
  [ -s "$work/out/$1.view.hpp" ] && [ -s "$work/out/$1.official.hpp" ] || fail "$1.capnp: a header is missing"
}

schema fields <<'END'
struct Point { x @0 :Int32; }
interface Service {}
struct Outer {
  struct Offender {
    any @0 :AnyPointer;
    anyStruct @1 :AnyStruct;
    anyList @2 :AnyList;
    capability @3 :Capability;
    service @4 :Service;
    services @5 :List(List(Service));
    fine @6 :List(Int8);
    place :group { deep @7 :AnyPointer; }
    union { left @8 :AnyList; right @9 :Int32; }
  }
}
END
refuses fields 'interface Service' \
  'struct Outer.Offender: field any is :AnyPointer, which is not supported; give it a type, or send it as Data' \
  'field anyStruct is :AnyStruct' 'field anyList is :AnyList' 'field capability is :Capability' \
  'field service is :Service, an interface' 'field services is :List(List(Service)), an interface' \
  'group Outer.Offender.place: field deep is :AnyPointer' 'field left is :AnyList'

# Every kind of field there is, and the lines that README and handlers are written against.
schema kinds <<'END'
struct Point { x @0 :Int32 = 3; }
struct Tree { children @0 :List(Tree); other @1 :Forest; }
struct Forest { first @0 :Tree; }
struct Every {
  name @0 :Text = "a \"name\"";
  bytes @1 :Data;
  point @2 :Point = (x = 4);
  points @3 :List(Point);
  names @4 :List(Text);
  bits @5 :List(Bool);
  voids @6 :List(Void);
  rows @7 :List(List(Float32)) = [[1]];
  place :group { line @8 :Int32; }
  choice :union { left @9 :Int32; right @10 :Text; box :group { width @11 :Int32; } }
  union { on @12 :Void; off @13 :Bool; }
  default @14 :Text;
}
struct Lists {
  text @0 :Text;
  shorts @1 :List(UInt16);
  alone @2 :Bool;
  givenOne @3 :List(Int8) = [1];
  union { longs @4 :List(Int64); none @5 :Void; }
  doubles @6 :List(Float64);
}
enum Kind { none @0; lengthsDiffer @1; null @2; http @3 $Cxx.name("httpUrl"); }
struct URL {}
struct Link { union { url @0 :URL; a :group { x @1 :Int32; } } }
struct Flags { first @0 :Bool; place :group { second @1 :Bool; } }
END
accepts kinds
# generates LINE: kinds.view.hpp has it.
generates() {
  grep -qF -- "$1" "$work/out/kinds.view.hpp" || fail "kinds.view.hpp lacks: $1"
}
generates '// name @0 :Text = "a \"name\"";'
generates 'wire::Text::Reader getName() const {'
generates 'return fields_.get<wire::Text>(0, {Reads::type_id, 0}, defaults::Every_name);'
generates 'bool hasName() const { return fields_.has(0); }'
generates 'GYRE_CONSTANT uint64_t Every_point[] = {0x100000000ul, 0x7ul};'
generates '// point @2 :Point = (x = 4);'
generates 'wire::List<wire::List<float>>::Reader getRows() const'
generates '// place :group { line }'
generates 'Every::Place::Reader getPlace() const { return Every::Place::Reader(fields_); }'
generates '// choice :union { left; right; box }'
generates 'Every::Choice::Box::Builder initBox() const'
generates 'Which which() const { return fields_.get<Which>('
generates '// on @12 :Void;  (in the union)'
generates 'bool isOn() const { return which() == Which::ON; }'
generates 'void setOn() const { choose_(Which::ON); }'
generates 'wire::Text::Reader getDefault() const'
generates 'bool hasDefault() const'
generates 'void setDefault(wire::Text::Reader value) const'
generates 'inline Tree::Reader Forest::Reader::getFirst() const {'
# Lists that are always there for the second and fifth pointers, of UInt16 and of Float64.
generates 'static constexpr uint64_t number_lists = 0x5018;'
[ "$(grep -c number_lists "$work/out/kinds.view.hpp")" -eq 1 ] || fail 'kinds.view.hpp: other lists of numbers'
generates 'void setAlone(bool value) const { fields_.set_lone_bool(0, value); }'
generates 'void setFirst(bool value) const { fields_.set_bool(0, value); }'
generates 'void setSecond(bool value) const { fields_.set_bool(1, value); }'
generates 'LENGTHS_DIFFER = 1,'
generates 'NULL_ = 2,'
generates 'HTTP_URL = 3,'
# A union's enumerant hides a type of its name.
generates '::test::view::URL::Reader getUrl() const'
generates 'using Builds = A;'

schema generic_field <<'END'
struct Box(T) { value @0 :T; struct Lid { size @0 :UInt8; } }
struct Offender { box @0 :Box(Text); boxes @1 :List(Box(Data)); lid @2 :Box(Text).Lid; }
END
refuses generic_field 'struct Box is generic' 'struct Offender: field box is :Box, of a generic type' \
  'field boxes is :List(Box), of a generic type' 'field lid is :Box.Lid, of a generic type'

schema generic <<'END'
struct Box(T) { size @0 :UInt32; }
END
refuses generic 'struct Box is generic'

# Names of the schema differ in C++ too; what $Cxx.name says may not.
schema names_that_differ <<'END'
struct Fields { httpURL @0 :Int32; httpUrl @1 :Int32; name @2 :Text; hasName @3 :Bool; which @4 :Int32; union { a @5 :Void; b @6 :Void; } }
enum Kind { aB @0; a @1; aB2 @2; ab2 @3; aB2C @4; aB2c @5; aBC @6; aBc @7; }
struct Struct { reads @0 :Int32; builds @1 :Int32; }
END
accepts names_that_differ

schema collision <<'END'
struct Fields { one @0 :Int32; other @1 :Int32 $Cxx.name("One"); union { up @2 :Void; down @3 :Void $Cxx.name("up"); } }
enum Kind { one @0; other @1 $Cxx.name("one"); }
END
refuses collision 'struct Fields: field one and field other would both be getOne in C++; rename one' \
  'struct Fields: field up and field down would both be getUp' \
  'enum Kind: enumerant one and enumerant other would both be ONE'

schema macros <<'END'
enum Kind { nan @0; eof @1; fine @2; }
struct Number { union { value @0 :Int32; infinity @1 :Void; } }
END
refuses macros 'enum Kind: enumerant nan would be NAN in C++, a macro of the standard headers; rename it' \
  'enumerant eof would be EOF' 'struct Number: field infinity would be INFINITY'

schema members <<'END'
struct Classes { place :group { x @0 :Int32; } struct Place {} }
struct Itself { itself :group { x @0 :Int32; } }
struct Views { reader :group { x @0 :Int32; } which :group { y @1 :Int32; } }
struct Link { union { url @0 :URL; none @1 :Void; } struct URL {} }
struct A { union { a @0 :Int32; b @1 :Int32; } }
END
refuses members 'struct Classes: Place and group place would both be Place' \
  'struct Itself: the struct itself and group itself would both be Itself' \
  'struct Views: group reader would be Reader, which every view uses' 'group which would be Which' \
  'struct Link: URL and field url would both be URL' 'struct A: the struct itself and field a would both be A'

schema names <<'END'
struct Outer { struct Reader { x @0 :Int32; } enum Builder { a @0; } struct Which {} struct Reads {} struct Outer {} }
END
refuses names 'struct Outer.Reader has a name that every view uses' 'enum Outer.Builder has a name' \
  'struct Outer.Which has a name' 'struct Outer.Reads has a name' \
  'struct Outer: the struct itself and Outer would both be Outer'

printf '@0xd1f0a3b5c7e92846;\nstruct X { a @0 :Int32; }\n' >"$work/in/bare.capnp"
refuses bare 'no C++ namespace; add: using Cxx = import "/capnp/c++.capnp"; $Cxx.namespace('

# Types of another file: its header is included; a file without a namespace is named.
printf '@0xd1f0a3b5c7e92847;\nenum Kind { a @0; }\nstruct Thing {}\n' >"$work/in/other.capnp"
schema imports <<'END'
using Other = import "other.capnp";
struct X { kind @0 :Other.Kind; thing @1 :Other.Thing; things @2 :List(List(Other.Thing)); }
END
refuses imports 'struct X: field kind uses an enum of other.capnp, which has no C++ namespace' \
  'struct X: field thing uses a struct of other.capnp, which' 'field things uses a struct of other.capnp'
echo '$import "/capnp/c++.capnp".namespace("elsewhere");' >>"$work/in/other.capnp"
accepts imports
grep -q '#include "other.view.hpp"' "$work/out/imports.view.hpp" || fail 'imports.view.hpp lacks its include'
grep -q '::elsewhere::view::Kind getKind()' "$work/out/imports.view.hpp" || fail 'imports.view.hpp lacks the enum'
grep -q '::elsewhere::view::Thing::Reader getThing()' "$work/out/imports.view.hpp" || fail 'imports.view.hpp lacks the struct'

# What is ignored, and outputs that mirror the folders of their schemas.
mkdir "$work/in/deep"
schema deep/ignored <<'END'
const answer :Int32 = 42;
annotation note(field) :Text;
using Number = Int32;
struct X { class @0 :Number $note("a keyword"); }
END
accepts deep/ignored
grep -q 'int32_t getClass() const' "$work/out/deep/ignored.view.hpp" || fail 'deep/ignored.view.hpp lacks getClass'

# One bad file among the requested keeps the good ones unwritten too.
rm -rf "$work/out" && mkdir "$work/out"
"$capnp" compile -o"$plugin:$work/out" --src-prefix="$work/in" "$work/in/deep/ignored.capnp" "$work/in/generic.capnp" \
  >"$work/log" 2>&1 && fail 'a bad file among good ones was accepted'
[ -z "$(ls "$work/out")" ] || fail 'a good file beside a bad one was written'

# Not started by capnp.
echo 'not a request' | "$plugin" >"$work/log" 2>&1 && fail 'text was taken for a request'
grep -q '^capnpc-gyre: ' "$work/log" || fail 'text for a request: no message'

[ "$failures" -eq 0 ] && echo 'All as expected.'
exit "$((failures != 0))"
