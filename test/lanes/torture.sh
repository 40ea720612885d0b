#!/usr/bin/env bash
# Like faults.sh, with large figures. Run it before a release, or after a change of the storage.
# An argument selects the checks whose name contains it. FAULTS_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."

PATH="$PWD/node_modules/.bin:$PATH" exec node test/lanes/faults.ts torture "$@"
