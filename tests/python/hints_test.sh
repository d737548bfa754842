#!/usr/bin/env bash
# hints_test.sh PYTHON GYRE_SOURCE_DIR FOLDER: mypy --strict accepts the package, and a program that uses it. Installs
# mypy from PyPI into FOLDER, where it stays; is skipped where that fails, or there is no NumPy.
set -euo pipefail
python=$1 gyre=$2 folder=$3
version=1.11.2
if ! "$python" -c 'import numpy' 2>/dev/null; then
  echo "skipped: $python has no NumPy (Debian: python3-numpy)"
  exit 77
fi
if ! [[ -x $folder/bin/mypy ]]; then
  rm -rf "$folder"
  if ! { "$python" -m venv "$folder" && timeout 40 "$folder/bin/pip" install --quiet --disable-pip-version-check \
      --retries 0 "mypy==$version"; } >/dev/null 2>&1; then
    rm -rf "$folder"
    echo "skipped: mypy could not be installed from PyPI (Debian: python3-venv)"
    exit 77
  fi
fi
cd "$gyre/tests/python"
MYPYPATH=$gyre/runtime/python "$folder/bin/mypy" --strict --python-version 3.9 --python-executable "$python" --cache-dir "$folder.cache" \
  "$gyre/runtime/python/gyre" hints.py
