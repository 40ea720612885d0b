#!/usr/bin/env bash
# The same as faults.sh with the large figures: before a release, or after a change to how anything is stored.
# An argument chooses the checks whose name holds it; FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

PATH="$PWD/node_modules/.bin:$PATH" exec node test/lanes/faults.ts torture "$@"
