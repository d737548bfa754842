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
    name @0 :Text;
    bytes @1 :Data;
    point @2 :Point;
    any @3 :AnyPointer;
    points @4 :List(Point);
    names @5 :List(Text);
    bits @6 :List(Bool);
    voids @7 :List(Void);
    rows @8 :List(List(Float32));
    preset @9 :List(Float32) = [1, 2];
    place :group { line @10 :Int32; }
    choice :union { left @11 :Int32; right @12 :Int32; }
    fine @13 :List(Int8);
  }
}
END
refuses fields 'interface Service' \
  'struct Outer.Offender: field name is :Text, .*supported are' \
  'field bytes is :Data' 'field point is :Point' 'field any is :AnyPointer' 'field points is :List(Point)' \
  'field names is :List(Text)' 'field bits is :List(Bool)' 'field voids is :List(Void)' \
  'field rows is :List(List(Float32))' 'field preset is :List(Float32) with a default' \
  'field place is a group' 'field choice is a union'

schema unnamed_union <<'END'
struct Offender { union { left @0 :Int32; right @1 :Float32; } }
END
refuses unnamed_union 'struct Offender: field left is :Int32 in a union' 'field right is :Float32 in a union'

schema generic <<'END'
struct Box(T) { size @0 :UInt32; }
END
refuses generic 'struct Box is generic'

schema collision <<'END'
struct Offender { httpURL @0 :Int32; httpUrl @1 :Int32; }
enum Kind { aB @0; a @1; aB2 @2; ab2 @3; aB2C @4; aB2c @5; aBC @6; aBc @7; }
END
refuses collision 'struct Offender: fields httpURL and httpUrl would both be http_url' \
  'enum Kind: enumerants aBC and aBc would both be a_bc'

schema names <<'END'
struct Outer { struct Reader { x @0 :Int32; } }
END
refuses names 'struct Outer.Reader has a name that every view uses'

printf '@0xd1f0a3b5c7e92846;\nstruct X { a @0 :Int32; }\n' >"$work/in/bare.capnp"
refuses bare 'no C++ namespace; add: using Cxx = import "/capnp/c++.capnp"; $Cxx.namespace('

# An enum of another file: its header is included; a file without a namespace is named.
printf '@0xd1f0a3b5c7e92847;\nenum Kind { a @0; }\n' >"$work/in/other.capnp"
schema imports <<'END'
using Other = import "other.capnp";
struct X { kind @0 :Other.Kind; }
END
refuses imports 'struct X: field kind uses an enum of other.capnp, which has no C++ namespace'
echo '$import "/capnp/c++.capnp".namespace("elsewhere");' >>"$work/in/other.capnp"
accepts imports
grep -q '#include "other.view.hpp"' "$work/out/imports.view.hpp" || fail 'imports.view.hpp lacks its include'
grep -q '::elsewhere::view::Kind kind()' "$work/out/imports.view.hpp" || fail 'imports.view.hpp lacks the enum'

# What is ignored, and outputs that mirror the folders of their schemas.
mkdir "$work/in/deep"
schema deep/ignored <<'END'
const answer :Int32 = 42;
annotation note(field) :Text;
using Number = Int32;
struct X { class @0 :Number $note("a keyword"); }
END
accepts deep/ignored
grep -q 'int32_t class_() const' "$work/out/deep/ignored.view.hpp" || fail 'class is not class_'

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
