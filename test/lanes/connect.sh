#!/usr/bin/env bash
# Connects the real Claude Code, Codex and Gemini CLI to a real listener, checks what they report, and disconnects them.
# They are large, so only this lane installs them, with its own lock file.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"

# Run only this install script. It replaces a stub with Claude Code's program.
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
