#!/usr/bin/env bash
# Runs the long checks in full: every escape from the sandbox of own packs, and upkeep commands killed at random moments.
# `npm test` and `npm run lane:faults` run a part of each for every commit.
# FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

export NODE_COMPILE_CACHE=$PWD/node_modules/.cache/node
export PATH="$PWD/node_modules/.bin:$PATH"
HELMDECK_TEST_ESCAPES=all vitest run test/main/own-packs/escapes.test.ts
exec node test/lanes/faults.ts torture "upkeep killed"
