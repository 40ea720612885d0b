import { describe, expect, test } from 'vitest';
import type { ExecutionContext, Pack } from '../../../src/core/packs/pack.ts';
import { HOUR } from '../../support/clock.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';
import { aPack, CREDENTIAL } from '../../support/packs.ts';

const me = aCaller();
const SECOND_WORD = / (.*)$/;

/** Returns the input and the number of outputs it has captured. */
const counting = async ({ input: { what }, memory, doNotCache }: ExecutionContext<{ what: string }>) => {
  if (what === 'break') throw new Error('broken');
  if (what === 'once') doNotCache();
  if (what === 'secret') return { said: CREDENTIAL };
  if (what === 'lines') return { said: `log:\n${CREDENTIAL}` };
  if (what === 'cookie') return { said: '', headers: { 'Set-Cookie': 'theme=dark' } };
  if (what === 'no-store') return { said: '', headers: [['Cache-Control', 'max-age=0, no-store']] };
  if (what === 'long') return { said: 'x'.repeat(70 * 1024) };
  return { said: `${(await memory?.list('captured/'))?.length} ${what}` };
};

async function opened(memory: Pack['memory']) {
  const { as, store, clock } = await openTestMemory({ packs: { packs: [aPack(counting, memory ? { memory } : {})] } });
  const ask = async (what: string, { caller = me, session = '' } = {}) => {
    const { output } = await as(caller)('runPack', { name: 'test.echo', input: { what }, ...(session !== '' && { session }) });
    return (output as { said: string }).said;
  };
  const kept = async (subject = 'me') =>
    (await store.space({ subject }, 'pack').page({ sort: 'updated', limit: 50 })).entries.map(
      ({ value }) => SECOND_WORD.exec((JSON.parse(value) as { said: string }).said)?.[1],
    );
  return { ask, kept, clock };
}

describe('a captured output (R-PACK-30)', () => {
  test('is stored if the pack asks for it, the last one for each input', async () => {
    const { ask, kept } = await opened({ capture: true });
    expect(await ask('one')).toBe('0 one');
    expect(await ask('two')).toBe('1 two');
    expect(await ask('one')).toBe('2 one');
    expect(await kept()).toEqual(['one', 'two']);
  });

  test('is not stored otherwise', async () => {
    const { ask, kept } = await opened({});
    await ask('one');
    expect(await kept()).toEqual([]);
  });

  test.each(['break', 'once', 'secret', 'lines', 'long', 'cookie', 'no-store'])(
    'is not stored if it may not be cached: %s',
    async (what) => {
      const { ask, kept } = await opened({ capture: true });
      await ask(what).catch(() => undefined);
      expect(await kept()).toEqual([]);
      expect(await ask('well')).toBe('0 well');
    },
  );

  test('is not stored again for a cached output', async () => {
    const { ask, kept, clock } = await opened({ capture: true, cache: true, ttl: 7200 });
    await ask('one');
    await clock.advance(HOUR);
    await ask('one');
    await clock.advance(HOUR);
    // The captured entry expires together with the cached output.
    expect(await kept()).toEqual([]);
  });

  test('belongs to its subject and session, and ends with the session', async () => {
    const { ask, kept, clock } = await opened({ capture: true });
    await ask('one', { session: 's1' });
    expect(await ask('two', { session: 's1' })).toBe('1 two');
    expect(await ask('mine')).toBe('0 mine');
    expect(await ask('theirs', { caller: aCaller({ subject: 'another' }) })).toBe('0 theirs');
    expect(await kept()).toEqual(['mine']);
    await clock.advance(HOUR);
    expect(await ask('new', { session: 's1' })).toBe('0 new');
  });
});
