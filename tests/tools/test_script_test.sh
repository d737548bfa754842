#!/usr/bin/env bash
# test_script_test.sh SOURCE_DIR: what tools/test.sh says of results, with a ctest and a cmake that only pretend.
set -euo pipefail
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tools" "$dir/bin"
cp "$1/tools/test.sh" "$dir/tools/"
cd "$dir"
printf '#!/bin/sh\n' >tools/setup.sh
printf '#!/bin/sh\n' >bin/cmake
# Results of 12 tests that take 1 to 12 s; the fifth was skipped, the seventh failed, the third skipped two of its cases.
cat >bin/ctest <<'PROGRAM'
#!/usr/bin/env python3
import os, sys
path = sys.argv[sys.argv.index("--output-junit") + 1]
os.makedirs(os.path.dirname(path), exist_ok=True)
with open(path, "w") as out:
    out.write("<testsuite>")
    for n in range(1, 13):
        status = {5: "notrun", 7: "fail"}.get(n, "run")
        inner = {5: '<skipped message="SKIP_RETURN_CODE=77"/>', 7: '<failure message="Failed"/>'}.get(n, "")
        said = "All tests passed\n" if n != 3 else "skipped case: on two GPUs: one GPU here\nskipped case: b: c\nAll passed\n"
        out.write(f'<testcase name="test_{n}" time="{n}.25" status="{status}">{inner}<system-out>{said}</system-out></testcase>')
    out.write("</testsuite>")
sys.exit(8)
PROGRAM
chmod +x bin/* tools/*
code=0
PATH="$dir/bin:$PATH" timeout 60 tools/test.sh >out 2>err </dev/null || code=$?

failures=0
expect() {
  [[ "$2" == "$3" ]] && return
  echo "FAILED: $1"
  echo "  expected: $2"
  echo "  seen:     $3"
  failures=$((failures + 1))
}
expect 'exit code' 1 "$code"
expect 'the last line' '10 passed, 1 failed, 3 skipped' "$(tail -n 1 out)"
expect 'ten tests, the slowest first' "$(printf 'test_%s\n' 12 11 10 9 8 7 6 4 3 2)" \
  "$(sed -n 's/^ *[0-9.]* s  \(test_[0-9]*\) (dev)$/\1/p' out)"
expect 'skipped cases with their reasons' \
  "$(printf '  test_3 (dev): %s\n' 'on two GPUs: one GPU here' 'b: c')" "$(grep '^  test_3 (dev): ' out)"
((failures == 0)) || { cat out err; exit 1; }
echo ok
