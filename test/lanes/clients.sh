#!/usr/bin/env bash
# Programs of others against a real listener: MCP's conformance suite and Inspector, and mcporter, each as its users run it; and
# our bundle for Claude Desktop through the official tools for bundles.
# They are large, so only this lane installs them, by a lock file of its own.
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
