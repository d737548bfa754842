#!/usr/bin/env bash
# prints_test.sh FILE PROGRAM [ARGUMENT...]: the program succeeds, and prints the file.
set -euo pipefail
expected=$1
shift
printed=$("$@")
diff "$expected" <(echo "$printed")
