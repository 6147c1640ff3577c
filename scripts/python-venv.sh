#!/usr/bin/env bash
# Packages from PyPI in a virtual environment, once; needs python3 with venv.
#   python-venv.sh CACHE_DIR REQUIREMENTS_FILE        makes CACHE_DIR/venv
set -euo pipefail
cache="${1:?cache directory}" requirements="${2:?requirements file}"
[ -f "$cache/.complete" ] && exit 0
mkdir -p "$cache"
# Made aside and moved: several processes may install at once, and one may be killed.
work="$(mktemp -d "$cache/install-XXXXXX")"
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
if [ ! -f "$cache/.complete" ]; then
  rm -rf "$cache/venv"
  mv "$work/venv" "$cache/venv"
  touch "$cache/.complete"
fi
