#!/usr/bin/env bash
# The emulator of AWS, from a shell.
#   emulator.sh install CACHE_DIR                     MiniStack in a virtual environment, once; needs python3 with venv
#   emulator.sh run CACHE_DIR DATA_DIR PORT           in the foreground, its state in DATA_DIR when it is stopped with TERM
#   emulator.sh guard OWNER_PID DATA_DIR              ends the emulator of DATA_DIR and deletes it when OWNER_PID is gone
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"

install() {
  bash "$here/../python-venv.sh" "${1:?cache directory}" "$here/requirements.txt"
}

run() {
  local cache="${1:?cache directory}" data="${2:?data directory}" port="${3:?port}"
  # Functions run by the node that comes first here, whatever their runtime says: the project's own.
  export PATH="$here/../../node_modules/.bin:$PATH"
  export BIND_HOST=127.0.0.1 MINISTACK_HOST=127.0.0.1 GATEWAY_PORT="$port" AWS_ENDPOINT_URL="http://127.0.0.1:$port"
  export PERSIST_STATE=1 STATE_DIR="$data/state" S3_PERSIST="${S3_PERSIST:-1}" S3_DATA_DIR="$data/s3" TMPDIR="$data/tmp"
  # Waits of the machine take no time, unless a test wants to see them.
  export SFN_WAIT_SCALE="${SFN_WAIT_SCALE:-0}" LOG_LEVEL="${LOG_LEVEL:-WARNING}" SFTP_ENABLED=0
  mkdir -p "$TMPDIR"
  exec "$cache/venv/bin/python" "$here/emulator.py"
}

guard() {
  local owner="${1:?owner}" data="${2:?data directory}" file
  while kill -0 "$owner" 2>/dev/null && [ -d "$data" ]; do sleep 0.5; done
  # Below a shared directory too: whichever guard deletes it must not hide the emulator from the other. An emulator
  # leads a group of its own, in which its function workers are.
  for file in "$data/emulator.pid" "$data"/*/emulator.pid; do
    [ -f "$file" ] && kill -KILL -- "-$(cat "$file")" 2>/dev/null || true
  done
  for _ in 1 2 3; do rm -rf "$data" && break; sleep 0.5; done
}

case "${1:-}" in
  install | run | guard) "$@" ;;
  *) sed -n 2,5p "$0" >&2; exit 2 ;;
esac
