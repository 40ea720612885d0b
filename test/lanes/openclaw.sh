#!/usr/bin/env bash
# Connects a real OpenClaw gateway to a real listener, searches through it, and disconnects it. OpenClaw is
# large, so only this lane installs it, with its own lock file.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"

if [ ! -d test/lanes/openclaw/node_modules ]; then
  npm ci --ignore-scripts --no-audit --prefix test/lanes/openclaw >/dev/null || {
    rm -rf test/lanes/openclaw/node_modules
    echo "skipped: OpenClaw cannot be installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  }
fi
exec node test/lanes/openclaw.ts
