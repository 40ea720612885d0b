import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A tool that the model calls: the name of the server in the client's configuration, and the tool's own name. */
export interface ScriptedCall {
  readonly server: string;
  readonly tool: string;
  readonly input: object;
}

/** The part of a model request that the script needs. */
interface ModelRequest {
  /** The tools that the client offers. `reply` names the tool in the response. */
  readonly tools: readonly OfferedTool[];
  /** The results of the earlier calls, as the client sends them to the model. */
  readonly results: readonly unknown[];
}

interface OfferedTool {
  readonly name: string;
  readonly namespace?: string;
}

interface ToolCall extends OfferedTool {
  readonly id: string;
  readonly input: object;
}

/** One model API: reads its requests, and writes a response with a tool call, or with text if there is no call. */
interface ModelApi {
  readonly path: RegExp;
  readonly read: (body: Json) => ModelRequest;
  readonly reply: (call: ToolCall | undefined, isStream: boolean) => { readonly type: string; readonly text: string };
}

type Json = Readonly<Record<string, unknown>>;

const DONE = 'Done.';

/** A local server that imitates the APIs of models. It makes the client call tools, and records the results that it gets. */
export class RecordingModel implements AsyncDisposable {
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  #script: readonly ScriptedCall[] = [];
  #results: readonly unknown[] = [];
  #seen: string[] = [];
  #requests: string[] = [];

  static async open(): Promise<RecordingModel> {
    const model = new RecordingModel();
    model.#server.listen(0, '127.0.0.1');
    await once(model.#server, 'listening');
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The requested paths and the offered tools, for the details of a failed check. */
  get log(): readonly string[] {
    return this.#seen;
  }

  /** The bodies of the requests to a model since the conversation began, each as JSON. */
  get requests(): readonly string[] {
    return this.#requests;
  }

  /** Starts a new conversation. */
  begin(script: readonly ScriptedCall[]): void {
    this.#script = script;
    this.#results = [];
    this.#seen = [];
    this.#requests = [];
  }

  /** The results that the model has received, in the order of the script, each as JSON. */
  results(): string[] {
    return this.#results.map((result) => JSON.stringify(result));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await jsonOf(request);
    const path = request.url ?? '';
    const api = APIS.find((one) => one.path.test(path));
    if (!api || request.method !== 'POST') {
      this.#seen.push(`${request.method} ${path}`);
      response.writeHead(404).end('{}');
      return;
    }
    this.#requests.push(JSON.stringify(body));
    const { tools, results } = api.read(body);
    this.#seen.push(`${path}: ${results.length} results; tools ${tools.map(spelled).join(' ')}`);
    if (results.length > this.#results.length) this.#results = results;
    const next = this.#script[results.length];
    const tool = next && tools.find((offered) => spelled(offered).endsWith(letters(next.server + next.tool)));
    const call = next && tool && { ...tool, id: `call_${results.length}`, input: next.input };
    const { type, text } = api.reply(call, body['stream'] === true || path.includes('stream'));
    response.writeHead(200, { 'Content-Type': type }).end(text);
  }
}

const letters = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]/g, '');

const spelled = ({ name, namespace = '' }: OfferedTool): string => letters(namespace + name);

async function jsonOf(request: IncomingMessage): Promise<Json> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk);
  try {
    return Object(JSON.parse(text)) as Json;
  } catch {
    return {};
  }
}

const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : []);

const named = (tool: Json): OfferedTool => ({ name: String(tool['name']) });

const events = (all: readonly Json[]): string =>
  all.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join('');

/** Anthropic's Messages API, which Claude Code uses. */
const MESSAGES: ModelApi = {
  path: /\/v1\/messages(\?|$)/,
  read: ({ tools, messages }) => ({
    tools: listOf(tools).map(named),
    results: listOf(messages)
      .flatMap(({ content }) => listOf(content))
      .filter(({ type }) => type === 'tool_result')
      .map(({ content }) => content),
  }),
  reply(call, isStream) {
    const stop = { stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null };
    const block = call ? { type: 'tool_use', id: call.id, name: call.name, input: call.input } : { type: 'text', text: DONE };
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: 'message', type: 'message', role: 'assistant', model: 'recording', usage };
    if (!isStream) return { type: 'application/json', text: JSON.stringify({ ...message, content: [block], ...stop }) };
    const delta = call
      ? { type: 'input_json_delta', partial_json: JSON.stringify(call.input) }
      : { type: 'text_delta', text: DONE };
    const text = events([
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
      { type: 'content_block_start', index: 0, content_block: { ...block, ...(call ? { input: {} } : { text: '' }) } },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: stop, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]);
    return { type: 'text/event-stream', text };
  },
};

/** OpenAI's Responses API, which Codex uses. */
const RESPONSES: ModelApi = {
  path: /\/responses$/,
  read: ({ tools, input }) => ({
    tools: listOf(tools).flatMap((tool) =>
      tool['type'] === 'namespace'
        ? listOf(tool['tools']).map((inner) => ({ ...named(inner), namespace: String(tool['name']) }))
        : [named(tool)],
    ),
    results: listOf(input)
      .filter(({ type }) => type === 'function_call_output')
      .map(({ output }) => output),
  }),
  reply(call) {
    const item = call
      ? {
          type: 'function_call',
          id: `item_${call.id}`,
          call_id: call.id,
          name: call.name,
          ...(call.namespace !== undefined && { namespace: call.namespace }),
          arguments: JSON.stringify(call.input),
        }
      : { type: 'message', id: 'message', role: 'assistant', content: [{ type: 'output_text', text: DONE, annotations: [] }] };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const text = events([
      { type: 'response.created', response: { id: 'response' } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'response', usage } },
    ]);
    return { type: 'text/event-stream', text };
  },
};

/** Google's Gemini API, which Gemini CLI uses. */
const GENERATE: ModelApi = {
  path: /:(stream)?generateContent(\?|$)/i,
  read: ({ tools, contents }) => ({
    tools: listOf(tools).flatMap(({ functionDeclarations }) => listOf(functionDeclarations).map(named)),
    results: listOf(contents)
      .flatMap(({ parts }) => listOf(parts))
      .flatMap(({ functionResponse }) => (functionResponse === undefined ? [] : [Object(functionResponse)['response']])),
  }),
  reply(call, isStream) {
    const part = call ? { functionCall: { id: call.id, name: call.name, args: call.input } } : { text: DONE };
    const answer = JSON.stringify({
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    });
    return isStream ? { type: 'text/event-stream', text: `data: ${answer}\n\n` } : { type: 'application/json', text: answer };
  },
};

/** OpenAI's Chat Completions API, which OpenClaw uses for models of other vendors. */
const COMPLETIONS: ModelApi = {
  path: /\/chat\/completions$/,
  read: ({ tools, messages }) => ({
    tools: listOf(tools).map((tool) => named(Object(tool['function']) as Json)),
    results: listOf(messages)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => content),
  }),
  reply(call, isStream) {
    const about = { name: call?.name, arguments: JSON.stringify(call?.input) };
    const message = {
      role: 'assistant',
      ...(call
        ? { content: null, tool_calls: [{ index: 0, id: call.id, type: 'function', function: about }] }
        : { content: DONE }),
    };
    const reason = call ? 'tool_calls' : 'stop';
    const whole = { id: 'completion', model: 'recording', created: 1 };
    const chunk = (delta: object, finish: string | null): string =>
      `data: ${JSON.stringify({ ...whole, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    if (isStream) return { type: 'text/event-stream', text: `${chunk(message, null)}${chunk({}, reason)}data: [DONE]\n\n` };
    const choices = [{ index: 0, message, finish_reason: reason }];
    return { type: 'application/json', text: JSON.stringify({ ...whole, object: 'chat.completion', choices }) };
  },
};

const APIS: readonly ModelApi[] = [MESSAGES, RESPONSES, GENERATE, COMPLETIONS];
