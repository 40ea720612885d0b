#!/usr/bin/env bash
# Tests faults: failing and full disks, power cuts and kills, in the size for every commit.
# An argument selects the checks whose name contains it. FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The cache spares hundreds of workers from compiling the same modules.
export NODE_COMPILE_CACHE=$PWD/node_modules/.cache/node
PATH="$PWD/node_modules/.bin:$PATH" exec node test/lanes/faults.ts faults "$@"
