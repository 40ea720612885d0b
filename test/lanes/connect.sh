#!/usr/bin/env bash
# Claude Code, Codex and Gemini CLI as their users have them, connected to a real listener, asked what they think of it, and
# disconnected. They are large, so only this lane installs them, by a lock file of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"

# Of all that packages would run here, this alone is wanted: it puts Claude Code's program in the place of a stub.
finish() { node test/lanes/connect/node_modules/@anthropic-ai/claude-code/install.cjs; }

if [ ! -d test/lanes/connect/node_modules ]; then
  { npm ci --ignore-scripts --no-audit --prefix test/lanes/connect && finish; } >/dev/null || {
    rm -rf test/lanes/connect/node_modules
    echo "skipped: the clients cannot be installed"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  }
fi
exec node test/lanes/connect.ts
