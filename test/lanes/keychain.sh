#!/usr/bin/env bash
# Tests the key of the memory with a real Secret Service: gnome-keyring on private D-Bus sessions and home folders.
# Each case runs in a separate process with a temporary home folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"
. test/lanes/bus.sh

# The longest case waits twice for the five-second timeout of a keyring. A slow machine needs longer.
patience=180
password='only of this lane'
umask 077
# The folder contains sockets, whose paths must be short.
world=$(mktemp -d /tmp/helmdeck.XXXXXX)
mkdir "$world/homes"
trap 'rm -rf "$world"' EXIT
passed=0 failed=0 skipped=0

missing=()
for tool in dbus-run-session dbus-daemon dbus-send gnome-keyring-daemon; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
[ -n "$(find /lib /lib64 /usr/lib /usr/lib64 -name 'libsecret-1.so.0' -print -quit 2>/dev/null)" ] || missing+=(libsecret-1.so.0)

# Use nothing of the developer: no keyring, no display, no keys.
alone() {
  local home=$1
  shift
  mkdir -p "$home/run"
  env -i PATH="$PATH" LANG=C.UTF-8 HOME="$home" XDG_RUNTIME_DIR="$home/run" KEYRING_PASSWORD="$password" BUSES="$world" "$@"
}

# Session buses that start only the services of their folder.
make_bus() {
  mkdir -p "$world/$1.services"
  write_bus "$world/$1.conf" "$world/$1.services"
}

make_service() {
  printf '[D-BUS Service]\nName=%s\nExec=%s\n' "$2" "$3" >"$world/$1.services/$2.service"
}

make_buses() {
  local keyring
  keyring="$(command -v gnome-keyring-daemon) --foreground --components=secrets"
  make_bus empty
  # Without a prompter, requests to a locked keyring are refused at once.
  make_bus keyring
  make_service keyring org.freedesktop.secrets "$keyring"
  # A prompter that never answers.
  make_bus asking
  make_service asking org.freedesktop.secrets "$keyring"
  printf '#!/bin/sh\necho $$ >"$HOME/prompter"\nexec sleep %s\n' "$patience" >"$world/silent-prompter"
  chmod +x "$world/silent-prompter"
  make_service asking org.gnome.keyring.SystemPrompter "$world/silent-prompter"
}

# Runs a case on a bus, or without one (`none`), in the given home folder.
run_case() {
  local name=$1 bus=$2 home=$3 status=0 session=()
  if [ "$bus" != none ]; then session=(dbus-run-session --config-file="$world/$bus.conf" --); fi
  alone "$home" timeout --kill-after=5 "$patience" "${session[@]}" node test/lanes/keychain.ts "$name" \
    >"$world/said" 2>"$world/complained" || status=$?
  cat "$world/said"
  local oks faults gaps
  oks=$(grep -c '^ok ' "$world/said") || true
  faults=$(grep -c '^FAILED ' "$world/said") || true
  gaps=$(grep -c '^skipped: ' "$world/said") || true
  # A case that crashes or checks nothing has failed.
  if [ $status -ne 0 ] || [ $((oks + faults)) -eq 0 ]; then
    echo "FAILED the case $name ended with exit code $status"
    faults=$((faults + 1))
  fi
  if [ "$faults" -gt 0 ]; then sed 's/^/    /' "$world/complained"; fi
  passed=$((passed + oks))
  failed=$((failed + faults))
  skipped=$((skipped + gaps))
}

# Runs a case with a real keychain, in a copy of another case's home folder.
run_keychain_case() {
  if [ ${#missing[@]} -gt 0 ]; then
    echo "skipped: ${missing[*]} (the case $1)"
    skipped=$((skipped + 1))
    return
  fi
  local home="$world/homes/$1" from=${3:-first-start}
  if [ "$from" != empty ]; then cp -a "$world/homes/$from" "$home"; fi
  run_case "$1" "$2" "$home"
}

if [ ${#missing[@]} -eq 0 ]; then make_buses; fi
# The first case creates a keyring in its home folder, and the next one the memory for all other cases.
run_keychain_case no-keyring-yet keyring empty
run_keychain_case first-start keyring no-keyring-yet
run_keychain_case locked keyring
run_keychain_case locked-first-start keyring no-keyring-yet
run_keychain_case silent-prompter asking
run_keychain_case stopped-service keyring
run_keychain_case no-service empty
run_keychain_case no-bus none
run_keychain_case bus-dies none
run_keychain_case keyring-restarts keyring
run_keychain_case bus-restarts none
run_keychain_case absent keyring
run_keychain_case mismatch keyring
run_keychain_case malformed keyring
run_keychain_case no-library keyring
run_keychain_case library-later keyring
run_keychain_case rotation keyring
run_keychain_case interrupted-rotation keyring
run_keychain_case recovery keyring
# On the PostgreSQL from npm.
run_keychain_case database-recovery keyring
run_keychain_case credentials keyring
run_keychain_case another-machine keyring no-keyring-yet
# These cases need nothing from the system.
run_case environment none "$world/homes/environment"
run_case calls none "$world/homes/calls"

summary="$passed passed, $failed failed"
[ $skipped -eq 0 ] || summary+=", $skipped skipped"
echo "$summary"
[ $failed -eq 0 ]
