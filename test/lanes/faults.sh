#!/usr/bin/env bash
# Does what disks, power supplies and impatient people do to a memory, in the size for every commit.
# An argument chooses the checks whose name holds it; FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

PATH="$PWD/node_modules/.bin:$PATH" exec node test/lanes/faults.ts faults "$@"
