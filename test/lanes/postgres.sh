#!/usr/bin/env bash
# Runs the tests of the PostgreSQL store on Debian's PostgreSQL, which the tests start in a temporary folder as an ordinary user.
# Also runs the tests of all wires and of attacks by agents on that store. Runs a tenth of the operations, kills and moves;
# `npm run lane:soak` runs them all.
set -euo pipefail
cd "$(dirname "$0")/../.."

for initdb in /usr/lib/postgresql/*/bin/initdb; do
  [ ! -x "$initdb" ] || HELMDECK_TEST_POSTGRES=$(dirname "$initdb")
done
if [ -z "${HELMDECK_TEST_POSTGRES:-}" ]; then
  echo "skipped: PostgreSQL is not installed"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
export HELMDECK_TEST_POSTGRES
export HELMDECK_TEST_STORE=postgres HELMDECK_TEST_REQUESTS=${HELMDECK_TEST_REQUESTS:-2000}
HELMDECK_TEST_OPERATIONS=${HELMDECK_TEST_OPERATIONS:-100} PATH="$PWD/node_modules/.bin:$PATH" exec vitest run --testTimeout 3600000 test/core/store/postgres test/main/roots/database test/main/roots/several-processes test/parity test/core/brief
