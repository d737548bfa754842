#!/usr/bin/env bash
# with_numpy.sh PYTHON ARGUMENT...: runs Python, or is skipped where it has no NumPy.
if ! "$1" -c 'import numpy' 2>/dev/null; then
  echo "skipped: $1 has no NumPy (Debian: python3-numpy)"
  exit 77
fi
exec "$@"
