import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createServedHome } from './clients.ts';

export const CLIENT = { client: 'openclaw', subject: 'me' };
export const CONFIG = `{
  // mine
  "gateway": { "mode": "local" },
  "memory": { "search": { "provider": "none" } },
  "plugins": { "allow": ["memory-core"] },
}
`;

/** Imitates how OpenClaw writes its configuration: from scratch, without comments, with an entry for the plugin and its own metadata. */
const WRITES = `
import { readFileSync, writeFileSync } from 'node:fs';
import { json5 } from '${resolve('src/main/connect/json-text.ts')}';
const [file, enabled] = process.argv.slice(2);
const { plugins = {}, ...rest } = json5.valueAt(readFileSync(file, 'utf8'), []);
const others = (plugins.allow ?? []).filter((one) => one !== 'helmdeck-memory');
const allow = enabled === 'true' ? [...others, 'helmdeck-memory'] : others;
const entries = { ...plugins.entries, 'helmdeck-memory': { enabled: enabled === 'true' } };
const meta = { lastTouchedVersion: '2026.9.6' };
const written = { ...rest, plugins: { ...plugins, ...(others.length > 0 && { allow }), entries }, meta };
writeFileSync(file, JSON.stringify(written, undefined, 2));
`;

/**
 * A shell script that imitates OpenClaw as far as we use it: it copies the plugin, writes its configuration, marks a removed plugin, and
 * its gateway reports every plugin as found. It logs its arguments. `meanwhile` can change something during a call.
 */
const PROGRAM = `
echo "$@" >> "$HOME/asked"
state="$HOME/.openclaw"
case "$2" in
  install) [ ! -e "$HOME/refuses" ] || { echo 'no, thanks' >&2; exit 1; }
    mkdir -p "$state/extensions/helmdeck-memory" && cp "$3"/* "$state/extensions/helmdeck-memory/"
    [ ! -e "$HOME/breaks" ] || { echo 'out of breath' >&2; exit 1; }
    ${process.execPath} "$HOME/writes.mjs" "$state/openclaw.json" true ;;
  call) [ ! -e "$HOME/deaf" ] || { echo 'no gateway' >&2; exit 1; }
    word="\${6##*smoke}"; word="smoke\${word%%\\"*}"
    [ -e "$HOME/blind" ] || echo "{\\"path\\":\\"helmdeck/user_facts/helmdeck/doctor/$word\\"}" ;;
  uninstall) [ ! -e "$HOME/keeps" ] || exit 1
    rm -r "$state/extensions/helmdeck-memory"
    ${process.execPath} "$HOME/writes.mjs" "$state/openclaw.json" false ;;
esac
[ ! -e "$HOME/meanwhile" ] || . "$HOME/meanwhile"
`;

export async function aHomeWithOpenClaw(text = CONFIG) {
  const home = await createServedHome();
  home.program('openclaw', PROGRAM);
  home.put('writes.mjs', WRITES);
  const config = home.put('.openclaw/openclaw.json', text);
  const plugin = join(home.home, '.openclaw/extensions/helmdeck-memory');
  const mcporter = join(home.home, '.mcporter/mcporter.json');
  const asked = () => readFileSync(join(home.home, 'asked'), 'utf8').trim().split('\n');
  return { ...home, config, plugin, mcporter, asked };
}
