import { expect, test } from 'vitest';
import { manualClock } from '../../support/clock.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

test('lists pipelines with their authors, shows one, and adopts what was shown (R-DEFINE-04)', async () => {
  const folder = tempFolder();
  const { as, store, tokens } = await openTestMemory({ folder, clock: manualClock(Date.now()) });
  const steps = [{ id: 'one', pack: 'helmdeck.memory_store', input: { key: 'a', value: 'b' } }];
  await as(aCaller({ client: 'codex' }))('createPipeline', { id: 'note', title: 'Note\u202e it', steps });
  await tokens[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  const say = (...args: string[]) => runCli(args, { folder });

  expect((await say('pipeline', 'list')).out).toMatch(
    /^note +1 step +by codex +The author of this pipeline, codex, has no valid token/,
  );
  const shown = await say('pipeline', 'show', 'note');
  expect(shown.out).toMatch(/^note\nby codex, changed /);
  expect(shown.out).toContain('helmdeck.memory_store');
  expect(shown.out).not.toContain('\u202e');
  expect(await say('pipeline', 'adopt', 'note')).toMatchObject({ out: '', code: 2 });
  expect((await say('pipeline', 'list')).out).toMatch(/by codex/);
  const adopted = await say('pipeline', 'adopt', 'note', '--yes');
  expect(adopted).toMatchObject({ code: 0, out: 'The pipeline note is now yours.\n' });
  expect(adopted.err).toContain('helmdeck.memory_store');
  expect((await say('pipeline', 'list')).out).toMatch(/^note +1 step +by you +Note it/);
  expect(await say('pipeline', 'adopt', 'note', '--yes')).toMatchObject({
    code: 1,
    err: expect.stringContaining('already yours'),
  });
  expect((await say('activity')).out).toMatch(/command-line +adoptPipeline +note/);
});
