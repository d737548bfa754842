#!/usr/bin/env bash
# Builds Gyre and runs its tests.
#   tools/test.sh               all but the slow ones
#   tools/test.sh --all         all of them, and again under AddressSanitizer with UBSan and under ThreadSanitizer;
#                               and each fuzzer for a minute (GYRE_FUZZ_SECONDS says otherwise); and builds dev,
#                               release and gpu by g++ and by clang, where a warning is a failure
#   tools/test.sh -R ring       further arguments go to ctest; -L or -LE replaces the exclusion of slow tests
# At the end come the ten slowest tests, each skipped test case with its reason, and as the last line
# `N passed, N failed, N skipped`, over all that ran; a skipped test case counts as one skipped. Exit: 0 if tests ran and
# none failed. On a terminal a line shows how far it is.
set -euo pipefail
cd "$(dirname "$0")/.."

presets=(dev)
warning_builds=()  # preset:compiler, each built in a tree of its own
setup=(tools/setup.sh)
selection=(-LE slow)
arguments=()
for argument in "$@"; do
  case "$argument" in
    --all)
      presets=(dev asan tsan fuzz)
      warning_builds=(dev:g++ release:g++ gpu:g++ release:clang++ gpu:clang++)  # preset dev itself is dev:clang++
      setup+=(--all)
      selection=()
      continue
      ;;
    -L | -LE | --label-*) selection=() ;;
  esac
  arguments+=("$argument")
done

say() { echo "test: $*" >&2; }

if ((${#warning_builds[@]})); then
  say "all of it takes about an hour on 2 quick cores, three on slow ones"
else
  say "the first time this takes about 10 minutes on 2 cores, longer on slow ones"
fi

build() {
  say "building (preset $1)"
  local log quiet=(-- --quiet)
  if [[ -t 2 ]]; then quiet=(); fi  # on a terminal ninja shows its progress in one line
  log="$(cmake --preset "$1" 2>&1)" || { echo "$log" >&2; say "configuring preset $1 failed"; return 1; }
  cmake --build --preset "$1" "${quiet[@]}" >&2 || { say "building preset $1 failed"; return 1; }
}

# Builds preset $1 by compiler $2 in a tree of its own. A warning is a failure, a linker's too.
build_without_warning() {
  local tree="build/$1-$2" log
  say "building preset $1 by $2: a warning is a failure"
  log="$({ cmake --preset "$1" -B "$tree" "-DCMAKE_CXX_COMPILER=$2" -DGYRE_WARNINGS_AS_ERRORS=ON &&
    cmake --build "$tree" -- --quiet; } 2>&1)" && ! grep -q 'warning:' <<<"$log" ||
    { echo "$log" >&2; say "building preset $1 by $2 failed, or warned"; return 1; }
}

# Adds ctest's results of preset $1 to passed, failed and skipped, its times to slowest, and what test cases say that they
# were skipped for to skipped_cases.
count() {
  local counts
  counts="$(python3 - "$1" "build/$1/test_results.xml" <<'PYTHON'
import sys
import xml.etree.ElementTree as xml

preset, results = sys.argv[1:]
passed = failed = skipped = 0
times, cases = [], []
for test in xml.parse(results).getroot().iter("testcase"):
    reason = test.find("skipped")
    name = f"{test.get('name')} ({preset})"
    if test.get("status") == "run":
        passed += 1
    elif test.get("status") == "disabled" or reason is not None and reason.get("message", "").startswith("SKIP_"):
        skipped += 1
        continue  # its cases are not counted beside it
    else:
        failed += 1
    times.append(f"time {float(test.get('time')):8.1f} s  {name}")
    for line in test.findtext("system-out", "").splitlines():
        if line.startswith("skipped case: "):
            cases.append(f"case {name}: {line.removeprefix('skipped case: ')}")
print(passed, failed, skipped + len(cases))
print("\n".join(times + cases))
PYTHON
  )" || return 1
  local p f s
  read -r p f s <<<"${counts%%$'\n'*}"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  slowest+="$(sed -n 's/^time //p' <<<"$counts")"$'\n'
  skipped_cases+="$(sed -n 's/^case //p' <<<"$counts")"$'\n'
}

# Builds and tests preset $1.
test_preset() {
  build "$1" || return 1
  local results="$PWD/build/$1/test_results.xml" run=(ctest) status=0
  # ThreadSanitizer does not know the memory layout of kernels that randomise addresses by more than 28 bits.
  if [[ $1 == tsan ]] && setarch -R true 2>/dev/null; then run=(setarch -R ctest); fi
  rm -f "$results"
  say "running the tests of preset $1"
  if [[ -t 1 ]]; then run+=(--progress); fi
  # The limit, of a test that has none of its own, is for machines that are many times slower than what the tests are
  # written on, and run three at once.
  "${run[@]}" --test-dir "build/$1" --parallel 3 --timeout 900 --output-on-failure --no-tests=ignore \
    --test-output-size-passed 65536 --output-junit "$results" "${selection[@]}" "${arguments[@]}" || status=$?
  if [[ ! -f $results ]]; then
    say "ctest wrote no results for preset $1"
    return 1
  fi
  count "$1" || return 1
  return "$status"
}

passed=0 failed=0 skipped=0 status=0 slowest='' skipped_cases=''
report() {
  if [[ ${slowest//$'\n'/} ]]; then
    echo "The slowest tests:"
    sed '/^$/d' <<<"$slowest" | sort -rn | sed -n 1,10p
  fi
  if [[ ${skipped_cases//$'\n'/} ]]; then
    echo "Skipped test cases:"
    sed '/^$/d; s/^/  /' <<<"$skipped_cases"
  fi
  echo "$passed passed, $failed failed, $skipped skipped"
}
trap report EXIT  # however it ends
"${setup[@]}"
for preset in "${presets[@]}"; do
  test_preset "$preset" || status=1
done
for build in "${warning_builds[@]}"; do
  if build_without_warning "${build%:*}" "${build#*:}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)) status=1
  fi
done
if ((passed + failed == 0)); then
  say "no test ran"
  status=1
fi
exit "$status"
