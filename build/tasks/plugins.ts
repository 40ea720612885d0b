import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { claudeCode } from '../../src/main/connect/claude-code.ts';
import { codex } from '../../src/main/connect/codex.ts';
import type { Connector, HookCommands, LocalMachine } from '../../src/main/connect/connector.ts';
import { cursor } from '../../src/main/connect/cursor.ts';
import { geminiCli } from '../../src/main/connect/gemini-cli.ts';
import { COMMAND } from '../../src/main/connect/launch.ts';
import { vscode } from '../../src/main/connect/vscode.ts';

/** The folder with all plugins, which is also the marketplace of Claude Code and of Codex. */
export const PLUGINS_FOLDER = 'out/plugins';
const NAME = 'helmdeck-memory';
const MARKETPLACE = 'helmdeck';
const DISPLAY_NAME = 'Helmdeck Memory';
const AUTHOR = { name: 'Helmdeck Memory contributors' };
const DESCRIPTION =
  'One shared memory for all the AI agents on your machine: puts the facts that matter before the first answer, and lets the agent search, store and forget facts.';
const KEYWORDS = ['memory', 'local', 'private'];

type Files = Readonly<Record<string, string | Buffer>>;

/** The files that every plugin has, with their source. The bridge and the hook are the same files that the program ships. */
const BRIDGE = 'server/helmdeck-memory-mcp.mjs';
const HOOK = 'hooks/helmdeck-memory-hook.mjs';
const SHARED = {
  [BRIDGE]: 'integrations/stdio-bridge/helmdeck-memory-mcp.mjs',
  [HOOK]: 'integrations/hook/helmdeck-memory-hook.mjs',
  LICENSE: 'LICENSE',
};

interface Plugin {
  /** Its id is also the name of the plugin's folder. */
  readonly connector: Connector;
  readonly install: readonly string[];
  /** The placeholder that the client replaces by the plugin's folder, in the command of a hook. */
  readonly root: string;
  /** The files that only this client reads. */
  readonly own: (about: About) => Files;
}

type About = Readonly<Record<'name' | 'version' | 'description', string>>;

const json = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** The MCP server of a plugin. `folder` leads to the plugin's folder. */
const server = (client: string, folder: string, more: object = {}): object => ({
  mcpServers: { helmdeck: { command: 'node', args: [`${folder}${BRIDGE}`, '--client', client], ...more } },
});

const PLUGINS: readonly Plugin[] = [
  {
    connector: claudeCode,
    install: [`claude plugin marketplace add <this folder>`, `claude plugin install ${NAME}@${MARKETPLACE}`],
    root: '${CLAUDE_PLUGIN_ROOT}',
    own: (about) => ({
      '.claude-plugin/plugin.json': json({ ...about, author: AUTHOR, license: 'Apache-2.0', keywords: KEYWORDS }),
      '.claude-plugin/icon.png': readFileSync('build/icons/512x512.png'),
      '.mcp.json': json(server('claude-code', '${CLAUDE_PLUGIN_ROOT}/')),
    }),
  },
  {
    connector: codex,
    install: [`codex plugin marketplace add <this folder>`, `codex plugin add ${NAME}@${MARKETPLACE}`],
    root: '${PLUGIN_ROOT}',
    own: (about) => ({
      '.codex-plugin/plugin.json': json({
        ...about,
        author: AUTHOR,
        license: 'Apache-2.0',
        keywords: KEYWORDS,
        skills: './skills/',
        mcpServers: './.mcp.json',
        hooks: './hooks/hooks.json',
        interface: { displayName: DISPLAY_NAME, shortDescription: 'One memory for all your agents', category: 'Productivity' },
      }),
      // Codex replaces no placeholder here, but a relative `cwd` leads to the plugin. It passes on only the named variables.
      '.mcp.json': json(server('codex', '', { cwd: '.', env_vars: ['HELMDECK_DATA_DIR', 'XDG_DATA_HOME'] })),
    }),
  },
  {
    connector: geminiCli,
    install: ['gemini extensions install <this folder>/gemini-cli'],
    root: '${extensionPath}',
    own: (about) => ({ 'gemini-extension.json': json({ ...about, ...server('gemini-cli', '${extensionPath}/') }) }),
  },
];

/** A machine on which no client is installed. */
const NO_MACHINE: LocalMachine = {
  environment: {},
  platform: 'linux',
  home: () => '/nonexistent',
  places: () => [],
  run: () => Promise.reject(new Error('No program runs here.')),
};

/** Returns the hooks that `connect` would write to the client's configuration, with these commands. */
async function hooksOf({ connector }: Plugin, commands: HookCommands): Promise<object> {
  const steps = await connector.connect(NO_MACHINE, {
    client: connector.id,
    entry: { command: 'node', args: [], env: {} },
    folder: '',
    tokenFile: '',
    token: '',
    hooks: { commands, trust: false },
  });
  for (const step of steps) {
    if (step.does !== 'edit' || !step.path.endsWith('.json')) continue;
    const { hooks } = JSON.parse(step.edit(undefined) ?? '{}') as { hooks?: object };
    if (hooks) return hooks;
  }
  throw new Error(`${connector.name} gets no hooks.`);
}

/** Returns the files of all plugins by their path in the folder. The same sources always give the same files. */
export async function plugins(): Promise<Files> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const about: About = { name: NAME, version, description: DESCRIPTION };
  const skill = readFileSync('integrations/plugins/SKILL.md', 'utf8');
  const files: (readonly [string, string | Buffer])[] = [];
  for (const plugin of PLUGINS) {
    const { connector, root } = plugin;
    const run = (event: string): string => `node "${root}/${HOOK}" ${connector.id} ${event}`;
    const own: Files = {
      ...plugin.own(about),
      'hooks/hooks.json': json({ hooks: await hooksOf(plugin, { session: run('session'), prompt: run('prompt') }) }),
      'skills/shared-memory/SKILL.md': skill.replaceAll('{client}', connector.id),
      'README.md': readmeOf(plugin),
      ...Object.fromEntries(Object.entries(SHARED).map(([path, source]) => [path, readFileSync(source)])),
    };
    for (const [path, content] of Object.entries(own)) files.push([`${connector.id}/${path}`, content]);
  }
  return {
    '.claude-plugin/marketplace.json': json({
      name: MARKETPLACE,
      owner: AUTHOR,
      metadata: { description: DISPLAY_NAME },
      plugins: [{ name: NAME, source: './claude-code', description: DESCRIPTION }],
    }),
    '.agents/plugins/marketplace.json': json({
      name: MARKETPLACE,
      interface: { displayName: DISPLAY_NAME },
      plugins: [
        {
          name: NAME,
          source: { source: 'local', path: './codex' },
          policy: { installation: 'AVAILABLE', authentication: 'ON_INSTALL' },
          category: 'Productivity',
        },
      ],
    }),
    'README.md': folderReadme(),
    ...Object.fromEntries(files),
  };
}

function readmeOf({ connector: { id: client, name }, install }: Plugin): string {
  return `# ${DISPLAY_NAME} for ${name}

Gives ${name} the memory on your machine that all your agents share. At the start of a session and before each prompt, a hook puts the facts
that matter in front of the model, or nothing. The MCP server lets the model search, store and forget facts. A short skill says when.

1. Install Helmdeck Memory and start it.
2. Install this plugin:

\`\`\`sh
${install.join('\n')}
\`\`\`

3. Give the plugin its tokens with \`helmdeck-memory connect ${client}\`, or on the Connect page. Until then, the plugin says nothing.

The plugin contains no address and no token, opens no port, and sends nothing to another machine unless you connected ${name} to a server of
${DISPLAY_NAME}. It starts its two programs with the command \`node\`, version 18 or later.
`;
}

/** Links that add the MCP server to an editor. They contain no path, so they work on every machine with our command. */
function folderReadme(): string {
  const entry = (client: string) => ({ command: COMMAND, args: ['mcp', '--client', client], env: {} });
  return `# Plugins of ${DISPLAY_NAME}

| agent | install |
| --- | --- |
${PLUGINS.map(({ connector: { name }, install }) => `| ${name} | ${install.map((line) => `\`${line}\``).join('<br>')} |`).join('\n')}
| Cursor | ${cursor.link?.(entry('cursor'))} |
| Visual Studio Code | ${vscode.link?.(entry('vscode'))} |

Then connect the agent with \`helmdeck-memory connect\`, which creates its tokens. Open a link in a browser; it needs the command
\`${COMMAND}\` in the PATH.
`;
}

if (import.meta.main) {
  rmSync(PLUGINS_FOLDER, { recursive: true, force: true });
  for (const [path, content] of Object.entries(await plugins())) {
    mkdirSync(dirname(join(PLUGINS_FOLDER, path)), { recursive: true });
    writeFileSync(join(PLUGINS_FOLDER, path), content);
  }
  console.log(PLUGINS_FOLDER);
}
