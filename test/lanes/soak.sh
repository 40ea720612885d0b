#!/usr/bin/env bash
# Runs the long checks in full. `npm run lane:faults` runs a part of each for every commit.
# FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

export NODE_COMPILE_CACHE=$PWD/node_modules/.cache/node
PATH="$PWD/node_modules/.bin:$PATH" exec node test/lanes/faults.ts torture "upkeep killed"
