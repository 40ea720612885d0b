import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Checks } from './faults/checks.ts';
import { RecordingModel } from './recording-model.ts';

const PATIENCE_MS = 180_000;
const QUESTION = 'What is my editor?';

interface McpServers {
  /** A server whose tool `both` returns different text and structured content. */
  readonly probe: string;
  /** Our server, with a token. */
  readonly memory: { readonly url: string; readonly token: string };
}

/** A real client of models. */
interface ModelClient {
  readonly name: string;
  /** The lane that installs the client. */
  readonly lane: 'connect' | 'openclaw';
  readonly program: string;
  /** The representations of a result with both that the client passes to its model. */
  readonly passes: readonly ('text' | 'structure')[];
  /** Writes the client's settings and returns how to ask the question. */
  readonly prepare: (home: string, model: string, servers: McpServers) => { readonly args: string[]; readonly env?: object };
}

const bearer = ({ memory }: McpServers) => ({ Authorization: `Bearer ${memory.token}` });

function settings(home: string, file: string, value: object | string): void {
  const path = join(home, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value));
}

const CLIENTS: readonly ModelClient[] = [
  {
    name: 'Claude Code',
    lane: 'connect',
    program: 'claude',
    passes: ['structure'],
    prepare(_home, model, servers) {
      const mcpServers = {
        probe: { type: 'http', url: servers.probe },
        helmdeck: { type: 'http', url: servers.memory.url, headers: bearer(servers) },
      };
      const env = {
        ANTHROPIC_BASE_URL: model,
        ANTHROPIC_API_KEY: 'none',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        // Otherwise the model must first search for the tools.
        ENABLE_TOOL_SEARCH: 'false',
      };
      const config = ['--mcp-config', JSON.stringify({ mcpServers }), '--strict-mcp-config'];
      return { args: ['-p', QUESTION, ...config, '--allowedTools', 'mcp__probe', 'mcp__helmdeck'], env };
    },
  },
  {
    name: 'Codex',
    lane: 'connect',
    program: 'codex',
    passes: ['structure'],
    prepare(home, model, servers) {
      settings(
        home,
        '.codex/config.toml',
        `model = "recording"
model_provider = "recording"
approval_policy = "never"
[model_providers.recording]
name = "recording"
base_url = "${model}/v1"
wire_api = "responses"
[mcp_servers.probe]
url = "${servers.probe}"
[mcp_servers.helmdeck]
url = "${servers.memory.url}"
http_headers = { Authorization = "${bearer(servers).Authorization}" }
`,
      );
      return { args: ['exec', '--skip-git-repo-check', QUESTION] };
    },
  },
  {
    name: 'Gemini CLI',
    lane: 'connect',
    program: 'gemini',
    passes: ['text'],
    prepare(home, model, servers) {
      settings(home, '.gemini/settings.json', {
        mcpServers: {
          probe: { httpUrl: servers.probe },
          helmdeck: { httpUrl: servers.memory.url, headers: bearer(servers) },
        },
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
      });
      const env = { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: 'true' };
      return { args: ['-p', QUESTION, '--approval-mode', 'yolo', '-m', 'gemini-2.5-pro'], env };
    },
  },
  {
    name: 'OpenClaw',
    lane: 'openclaw',
    program: 'openclaw',
    passes: ['text', 'structure'],
    prepare(home, model, servers) {
      const transport = 'streamable-http';
      const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
      const about = { reasoning: false, input: ['text'], contextWindow: 200_000, maxTokens: 8000, cost };
      const recording = {
        baseUrl: `${model}/v1`,
        apiKey: 'none',
        api: 'openai-completions',
        models: [{ id: 'recording', name: 'recording', ...about }],
      };
      settings(home, '.openclaw/openclaw.json', {
        gateway: { mode: 'local' },
        agents: { defaults: { workspace: join(home, 'workspace'), model: { primary: 'recording/recording' } } },
        models: { providers: { recording } },
        // Otherwise the model must first search for the tools.
        tools: { toolSearch: false },
        mcp: {
          servers: {
            probe: { url: servers.probe, transport },
            helmdeck: { url: servers.memory.url, transport, headers: bearer(servers) },
          },
        },
        logging: { file: join(home, 'log') },
      });
      const env = { OPENCLAW_STATE_DIR: join(home, '.openclaw'), OPENCLAW_NO_RESPAWN: '1' };
      return { args: ['agent', '--local', '--agent', 'main', '--message', QUESTION, '--json'], env };
    },
  },
];

/**
 * Records what real clients send to their models after a tool call. Every client must pass an answer of our server exactly once.
 * Also checks which representation each client passes if a result has both, because our server relies on it (ADR 0102).
 */
export async function models(memory: McpServers['memory'], stored: string, checks: Checks): Promise<void> {
  await using model = await RecordingModel.open();
  using probe = await probeServer();
  const { check } = checks;
  for (const { name, lane, program, passes, prepare } of CLIENTS) {
    const path = resolve(import.meta.dirname, lane, 'node_modules/.bin', program);
    if (!existsSync(path)) {
      checks.skip(`${name} is not installed; npm run lane:${lane} installs it`);
      continue;
    }
    const home = mkdtempSync(join(tmpdir(), 'helmdeck-model-'));
    try {
      const { args, env } = prepare(home, model.url, { probe: probe.url, memory });
      model.begin([
        { server: 'probe', tool: 'both', input: {} },
        { server: 'helmdeck', tool: 'memory_search', input: { query: stored } },
      ]);
      const said = await run(path, args, home, { ...env });
      const [both = '', found = ''] = model.results();
      const seen = (['text', 'structure'] as const).filter((one) => both.includes(`the-${one}`));
      const details = { both, found, log: model.log, said };
      check(`${name} passes ${passes.join(' and ')} of a result with both to its model`, seen.join() === passes.join(), details);
      check(`${name} passes a found fact to its model exactly once`, found.split(stored).length === 2, details);
      check(`${name} passes the notice before it`, found.split(stored)[0]?.includes('Quoted data') === true, details);
    } finally {
      rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    }
  }
}

/** Runs a client in an empty home folder. Returns the end of its output. */
async function run(program: string, args: readonly string[], home: string, env: object): Promise<string> {
  const path = [dirname(program), dirname(process.execPath), '/usr/bin', '/bin'].join(':');
  const child = spawn(program, args, {
    cwd: home,
    env: { PATH: path, HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE_MS,
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await once(child, 'close');
  return said.slice(-2000);
}

/** An MCP server with one tool, whose text and structured content differ. */
async function probeServer(): Promise<Disposable & { readonly url: string }> {
  const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
  const object = { type: 'object' as const, properties: {} };
  const tool = { name: 'both', description: 'Returns a word.', inputSchema: object, outputSchema: object, annotations };
  const http = createServer((request, response) => {
    const server = new Server({ name: 'probe', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool] }));
    server.setRequestHandler(CallToolRequestSchema, () => ({
      content: [{ type: 'text', text: '{"word":"the-text"}' }],
      structuredContent: { word: 'the-structure' },
    }));
    // Each request has a server of its own, without a session.
    const transport = new StreamableHTTPServerTransport({});
    void server.connect(transport).then(() => transport.handleRequest(request, response));
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    [Symbol.dispose]() {
      http.close();
      http.closeAllConnections();
    },
  };
}
