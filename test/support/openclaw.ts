import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { aHome } from './clients.ts';

export const CLIENT = { client: 'openclaw', subject: 'me' };
export const CONFIG = `{
  // mine
  "gateway": { "mode": "local" },
  "memory": { "search": { "provider": "none" } },
  "plugins": { "allow": ["memory-core"] },
}
`;

/**
 * What OpenClaw does as far as we see it: it copies the plugin, writes its configuration anew without comments, and leaves a mark
 * of a plugin that it has removed, and its gateway finds all it is asked for. It notes what it was asked.
 */
const PROGRAM = `
echo "$@" >> "$HOME/asked"
state="$HOME/.openclaw"
case "$2" in
  install) [ ! -e "$HOME/refuses" ] || { echo 'no, thanks' >&2; exit 1; }
    mkdir -p "$state/extensions/helmdeck-memory" && cp "$3"/* "$state/extensions/helmdeck-memory/"
    printf '%s' '{"plugins":{"entries":{"helmdeck-memory":{"enabled":true}}},"meta":{}}' > "$state/openclaw.json" ;;
  call) [ ! -e "$HOME/deaf" ] || { echo 'no gateway' >&2; exit 1; }
    word="\${6##*smoke}"; word="smoke\${word%%\\"*}"
    [ -e "$HOME/blind" ] || echo "{\\"path\\":\\"helmdeck/user_facts/helmdeck/doctor/$word\\"}" ;;
  uninstall) rm -r "$state/extensions/helmdeck-memory"
    printf '%s' '{"plugins":{"entries":{"helmdeck-memory":{"enabled":false}}},"meta":{}}' > "$state/openclaw.json" ;;
esac
`;

export async function aHomeWithOpenClaw(text = CONFIG) {
  const home = await aHome();
  home.program('openclaw', PROGRAM);
  const config = home.put('.openclaw/openclaw.json', text);
  const plugin = join(home.home, '.openclaw/extensions/helmdeck-memory');
  const mcporter = join(home.home, '.mcporter/mcporter.json');
  const asked = () => readFileSync(join(home.home, 'asked'), 'utf8').trim().split('\n');
  return { ...home, config, plugin, mcporter, asked };
}
