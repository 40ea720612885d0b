#!/usr/bin/env bash
# Tests a real listener with other programs: MCP's conformance suite and Inspector, and mcporter, each as its users run it. Tests
# our bundle for Claude Desktop with the official bundle tools.
# The clients are large, so only this lane installs them, with its own lock file.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"

if [ ! test/lanes/clients/node_modules/.package-lock.json -nt test/lanes/clients/package-lock.json ]; then
  npm ci --ignore-scripts --no-audit --prefix test/lanes/clients >/dev/null || {
    echo "skipped: the clients cannot be installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  }
fi
exec node test/lanes/clients.ts
