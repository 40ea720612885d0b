import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { localMachine } from '../../src/main/connect/programs.ts';
import type { HeardBrief, HookMemory } from './hooks-memory.ts';
import type { RecordingModel } from './recording-model.ts';

const PROGRAMS = resolve(import.meta.dirname, 'connect/node_modules/.bin');
const PATIENCE_MS = 180_000;
/** The hook gives up after 270 ms. Ask again in a new session if the machine was too busy for it. */
const ATTEMPTS = 4;
const BUSY_MS = 120;

interface Request {
  readonly prompt: string;
  /** The working folder. */
  readonly folder: string;
  /** Whether the turn continues the last session in the folder. */
  readonly resumes: boolean;
}

/** One run of an agent. */
export interface Turn {
  /** The requests to the model, as JSON. */
  readonly requests: readonly string[];
  readonly briefs: readonly HeardBrief[];
  /** How often the agent was asked before, when its hook got no answer in time. */
  readonly retries: number;
  readonly output: string;
}

export interface RunningAgent {
  /** The state of the hooks after connecting. */
  readonly hooks: string | undefined;
  ask(request: Request): Promise<Turn>;
  disconnect(): Promise<void>;
}

interface Setting {
  readonly home: string;
  readonly model: RecordingModel;
  readonly memory: HookMemory;
}

/** A real agent. */
export interface HookAgent {
  readonly client: string;
  prepare(setting: Setting): Promise<RunningAgent>;
  /** Compacts the last session in the folder, and asks in the compacted session. Absent if the agent cannot be made to compact. */
  readonly compact?: (agent: RunningAgent, request: Request) => Promise<Turn>;
}

interface Definition {
  readonly client: string;
  readonly program: string;
  readonly files: (model: string) => Readonly<Record<string, string>>;
  readonly environment: (model: string) => Readonly<Record<string, string>>;
  readonly args: (request: Request) => readonly string[];
  readonly compact?: HookAgent['compact'];
}

const define = ({ compact, ...definition }: Definition): HookAgent => ({
  client: definition.client,
  ...(compact && { compact }),
  prepare: (setting) => prepare(definition, setting),
});

async function prepare(definition: Definition, { home, model, memory }: Setting): Promise<RunningAgent> {
  const { client, program } = definition;
  for (const [path, text] of Object.entries(definition.files(model.url))) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  const environment = {
    PATH: [PROGRAMS, dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
    HOME: home,
    ...definition.environment(model.url),
  };
  const connections = memory.connections(localMachine({ environment, platform: process.platform, home: () => home }));
  await connections.connect({ client, subject: 'me', trust_hooks: true });
  const row = (await connections.list()).clients.find(({ id }) => id === client);
  const run = async (request: Request): Promise<string> => {
    const options = { cwd: request.folder, env: environment, timeout: PATIENCE_MS };
    const child = spawn(join(PROGRAMS, program), definition.args(request), { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await once(child, 'close');
    return output.slice(-1500);
  };
  return {
    hooks: row?.hooks?.state,
    async ask(request) {
      for (let retries = 0; ; retries += 1) {
        memory.takeBriefs();
        model.begin([]);
        const output = await run(request);
        const briefs = memory.takeBriefs();
        const isHeard = briefs.some(({ prompt }) => prompt !== undefined) && briefs.every(({ ms }) => ms < BUSY_MS);
        const turn = { requests: conversationOf(model.requests, request.prompt), briefs, retries, output };
        if (isHeard || request.resumes || retries === ATTEMPTS - 1) return turn;
      }
    },
    disconnect: async () => void (await connections.disconnect({ client })),
  };
}

/** The requests with the person's prompt. Agents also ask their model for titles and summaries of conversations. */
const conversationOf = (requests: readonly string[], prompt: string): string[] => {
  const quoted = JSON.stringify(prompt).slice(1, -1);
  return requests.filter((request) => request.includes(quoted));
};

export const AGENTS: readonly HookAgent[] = [
  define({
    client: 'claude-code',
    program: 'claude',
    files: () => ({ '.claude.json': '{}' }),
    environment: (model) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    args: ({ prompt, resumes }) => ['-p', ...(resumes ? ['--continue'] : []), prompt],
    async compact(agent, request) {
      await agent.ask({ ...request, prompt: '/compact' });
      return agent.ask(request);
    },
  }),
  define({
    client: 'codex',
    program: 'codex',
    files: (model) => ({
      '.codex/config.toml': `model = "recording"
model_provider = "recording"
approval_policy = "never"

[model_providers.recording]
name = "recording"
base_url = "${model}/v1"
wire_api = "responses"
`,
    }),
    environment: () => ({}),
    args: ({ prompt, resumes }) => ['exec', ...(resumes ? ['resume', '--last'] : []), '--skip-git-repo-check', prompt],
  }),
  define({
    client: 'gemini-cli',
    program: 'gemini',
    files: () => ({
      '.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
      }),
    }),
    environment: (model) => ({
      GEMINI_API_KEY: 'none',
      GOOGLE_GEMINI_BASE_URL: model,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    args: ({ prompt, resumes }) => [...(resumes ? ['--resume', 'latest'] : []), '-p', prompt, '-m', 'gemini-2.5-pro'],
  }),
];
