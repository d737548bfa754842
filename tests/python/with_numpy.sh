#!/usr/bin/env bash
# with_numpy.sh PYTHON ARGUMENT…, or PROGRAM PYTHON ARGUMENT…: runs it, or is skipped where Python has no NumPy.
python=$1
[[ $python != *.sh ]] || python=$2
if ! "$python" -c 'import numpy' 2>/dev/null; then
  echo "skipped: $python has no NumPy (Debian: python3-numpy)"
  exit 77
fi
exec "$@"
