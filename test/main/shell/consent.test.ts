import { expect, test } from 'vitest';
import { questionBefore } from '../../../src/main/shell/consent.ts';

const hash = 'a'.repeat(64);

const approving = (ollama: { path: string; sha256?: string } | undefined) =>
  questionBefore(
    'approveOllama',
    { hash },
    {
      forget: async () => ({ count: 0, keys: [], backups: 0 }),
      undo: async () => ({ removed: 0, restored: 0 }),
      ollama: async () => ollama,
    },
  );

test('an Ollama is approved by its path and its hash, in lines of ours alone (R-DESK-08, R-EMB-03)', async () => {
  expect(await approving({ path: '/usr/local/bin/ollama', sha256: hash })).toMatchObject({
    message: 'Let the program start this Ollama?',
    detail: `/usr/local/bin/ollama\nSHA-256 ${hash}\n\nIt runs as you do, until you turn embeddings off.`,
  });
  const disguised = await approving({ path: `/home/me/a\nSHA-256 ${'b'.repeat(64)}/${'x'.repeat(400)}`, sha256: hash });
  expect(disguised?.detail.split('\n')).toHaveLength(4);
  expect(disguised?.detail.split('\n')[0]).toHaveLength(300);
});

test('what was not shown is not approved, whoever knows its hash (R-DESK-08)', async () => {
  await expect(approving(undefined)).rejects.toMatchObject({ code: 'invalid_input' });
  await expect(approving({ path: '/usr/local/bin/ollama', sha256: 'b'.repeat(64) })).rejects.toMatchObject({
    code: 'invalid_input',
  });
  await expect(approving({ path: '/tmp/ollama' })).rejects.toMatchObject({ code: 'invalid_input' });
});
