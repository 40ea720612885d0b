#!/usr/bin/env bash
# Runs the long checks in full: every escape from the sandbox of own packs, all runs of random tests, the tests of the core on
# the disk, all operations, kills and moves on PostgreSQL, and upkeep commands killed at random moments. `npm test` and the other
# lanes run a part of each for every commit, and `npm test` keeps most folders in RAM.
# FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

export NODE_COMPILE_CACHE=$PWD/node_modules/.cache/node
export PATH="$PWD/node_modules/.bin:$PATH"
HELMDECK_TEST_ESCAPES=all vitest run test/main/own-packs/escapes.test.ts
TMPDIR=${TMPDIR:-/tmp} HELMDECK_TEST_RUNS=all vitest run test/contract test/core test/listeners/mcp test/main/config test/main/shell
HELMDECK_TEST_OPERATIONS=1000 HELMDECK_TEST_REQUESTS=20000 bash test/lanes/postgres.sh
exec node test/lanes/faults.ts torture "upkeep killed"
