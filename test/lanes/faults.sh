#!/usr/bin/env bash
# Does what disks, power supplies and impatient people do to a memory, in the size for every commit.
# An argument chooses the checks whose name holds it; FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Its hundreds of workers need not compile the same modules each anew.
export NODE_COMPILE_CACHE=$PWD/node_modules/.cache/node
PATH="$PWD/node_modules/.bin:$PATH" exec node test/lanes/faults.ts faults "$@"
