#!/usr/bin/env bash
# Embeddings as their users have them: the program itself, with a stand-in for Ollama that makes true vectors. It is killed twenty
# times, measured at rest, and asked by the real OpenClaw, which is installed by the lock file of its own lane.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"

if [ ! -d test/lanes/openclaw/node_modules ]; then
  npm ci --ignore-scripts --no-audit --prefix test/lanes/openclaw >/dev/null || rm -rf test/lanes/openclaw/node_modules
fi
exec node test/lanes/embeddings.ts
