import { describe, expect, test } from 'vitest';
import { EMBEDDING } from '../../src/contract/limits.ts';
import { type Embeddings, noEmbeddings } from '../../src/core/operations/embeddings-port.ts';
import { sendRequest, serve } from '../support/listener.ts';

const PATH = '/v1/embeddings';

/** Vectors of three numbers in place of a model's output. */
function embedding(over: Partial<Embeddings> = {}) {
  const asked: (readonly [subject: string, texts: readonly string[]])[] = [];
  const embeddings: Embeddings = {
    ...noEmbeddings,
    model: 'nomic-embed-text',
    state: { at: 'ready', model: 'nomic-embed-text', whose: 'own' },
    async embed(subject, texts) {
      asked.push([subject, texts]);
      return { vectors: texts.map(({ length }) => [length, 0.5, -1]), tokens: 7 };
    },
    ...over,
  };
  return { embeddings, asked };
}

describe('POST /v1/embeddings (R-EMB-01)', () => {
  test('returns vectors in the format of OpenAI, for one text or several, in order', async () => {
    const { embeddings, asked } = embedding();
    const { url, token } = await serve({ embeddings });
    const bearer = await token('ada', ['memory:read']);
    const one = await sendRequest(url, PATH, { token: bearer, body: { model: 'nomic-embed-text', input: 'abc' } });
    expect(one.json).toEqual({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [3, 0.5, -1] }],
      model: 'nomic-embed-text',
      usage: { prompt_tokens: 7, total_tokens: 7 },
    });
    const body = { model: 'nomic-embed-text:latest', input: ['a', 'bb'], encoding_format: 'base64', dimensions: 3, user: 'x' };
    const many = await sendRequest(url, PATH, { token: bearer, body });
    const data = many.json['data'] as { index: number; embedding: string }[];
    const floats = data.map(({ embedding: text }) => [...new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer)]);
    expect(floats).toEqual([
      [1, 0.5, -1],
      [2, 0.5, -1],
    ]);
    expect(asked).toEqual([
      ['ada', ['abc']],
      ['ada', ['a', 'bb']],
    ]);
  });

  test('needs a token with the scope memory:read', async () => {
    const { url, token } = await serve(embedding());
    const body = { model: 'nomic-embed-text', input: 'a' };
    expect((await sendRequest(url, PATH, { body })).status).toBe(401);
    expect((await sendRequest(url, PATH, { body, token: await token('me', ['packs:run']) })).json.error).toBe(
      'insufficient_scope',
    );
  });

  test.for([
    { what: 'no text', body: { input: [] }, says: /^input must be a text or a list/ },
    { what: 'an empty text', body: { input: ['a', ''] }, says: /^input/ },
    { what: 'token ids instead of texts', body: { input: [[1, 2]] }, says: /^input/ },
    { what: 'a text that is too long', body: { input: 'x'.repeat(EMBEDDING.bytes + 1) }, says: /^input/ },
    { what: 'too many texts', body: { input: Array.from({ length: EMBEDDING.texts + 1 }, () => 'x') }, says: /^input/ },
    { what: 'half a character', body: { input: '\ud800' }, says: /^input/ },
    { what: 'another model', body: { input: 'a', model: 'text-embedding-3-small' }, says: /^model must be nomic-embed-text/ },
    { what: 'another encoding format', body: { input: 'a', encoding_format: 'int8' }, says: /^encoding_format/ },
    { what: 'null for a field', body: { input: 'a', encoding_format: null }, says: /^encoding_format/ },
    { what: 'other dimensions', body: { input: 'a', dimensions: 256 }, says: /^dimensions must be 3/ },
    { what: 'an unknown field', body: { input: 'a', task: 'x' }, says: /field/ },
  ])('refuses $what (R-EMB-02)', async ({ body, says }) => {
    const { url, token } = await serve(embedding());
    const { status, json } = await sendRequest(url, PATH, { token: await token(), body: { model: 'nomic-embed-text', ...body } });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: 'invalid_input', message: expect.stringMatching(says) });
  });

  test('is 503 with the remedy while embeddings are unavailable (R-EMB-02)', async () => {
    const { url, token } = await serve();
    const { status, json } = await sendRequest(url, PATH, {
      token: await token(),
      body: { model: 'nomic-embed-text', input: 'a' },
    });
    expect(status).toBe(503);
    expect(json.error).toBe('embeddings_unavailable');
  });

  test('no other API of Ollama is exposed', async () => {
    const { url, token } = await serve(embedding());
    const bearer = await token();
    for (const path of ['/api/embed', '/api/pull', '/api/tags', '/api/generate', '/v1/models', '/v1/chat/completions', '/v1/']) {
      expect((await sendRequest(url, path, { token: bearer })).status).toBe(404);
    }
  });
});
