#!/usr/bin/env bash
# Tests embeddings: the program itself, with a stand-in for Ollama that creates real vectors. The program is killed twenty
# times, measured while idle, and queried by the real OpenClaw, installed with the lock file of its lane.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"

if [ ! -d test/lanes/openclaw/node_modules ]; then
  npm ci --ignore-scripts --no-audit --prefix test/lanes/openclaw >/dev/null || rm -rf test/lanes/openclaw/node_modules
fi
exec node test/lanes/embeddings.ts
