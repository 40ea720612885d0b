#!/usr/bin/env bash
# Runs a lane with the real Claude Code, Codex and Gemini CLI: the one named by the argument, or the one that connects them to a
# real listener. They are large, so only these lanes install them, with their own lock file.
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
exec node "test/lanes/${1:-connect}.ts"
