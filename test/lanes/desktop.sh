#!/usr/bin/env bash
# Tests the desktop: the built program in a real Electron on a virtual display, while a real MCP client writes.
# HELMDECK_TEST_ELECTRON names the Electron binary. The default is the one that npm start downloads.
# An argument selects the checks whose name contains it.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"
. test/lanes/bus.sh

skip() {
  echo "skipped: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

electron=${HELMDECK_TEST_ELECTRON:-$PWD/node_modules/electron/dist/electron}
[ -x "$electron" ] || skip 'there is no Electron (HELMDECK_TEST_ELECTRON, or npm start, which fetches it)'
for tool in Xvfb dbus-daemon dbus-send dbus-run-session; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done

# Use nothing of the developer: no keyring, no display, no keys.
world=$(mktemp -d /tmp/helmdeck.XXXXXX)
mkdir "$world/home" "$world/run"
screen=
cleanup() {
  [ -z "$screen" ] || kill "$screen" 2>/dev/null || true
  rm -rf "$world"
}
trap cleanup EXIT
write_bus "$world/bus.conf"
Xvfb -displayfd 3 -screen 0 1280x800x24 -nolisten tcp 3>"$world/display" >"$world/xvfb" 2>&1 </dev/null &
screen=$!
for _ in $(seq 600); do
  [ ! -s "$world/display" ] || break
  sleep 0.1
done
[ -s "$world/display" ] || skip 'Xvfb shows no screen'

# Only the program uses this home folder. The clients and the browser keep theirs.
status=0
env DISPLAY=":$(cat "$world/display")" HOME="$world/home" XDG_RUNTIME_DIR="$world/run" XDG_CONFIG_HOME="$world/home/.config" \
  HELMDECK_TEST_ELECTRON="$electron" LANG=C.UTF-8 \
  dbus-run-session --config-file="$world/bus.conf" -- timeout --kill-after=10 2400 \
  node test/lanes/desktop.ts "$@" </dev/null || status=$?
exit $status
