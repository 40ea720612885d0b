import { aPack } from '../support/packs.ts';

/** Packs installed in every memory of these tests. */
export const PACKS = [
  aPack(({ input: { what }, session = 'none' }) => ({ said: what, session })),
  aPack(
    async ({ input: { what }, memory }) => {
      if (what !== 'nothing') await memory?.store(what, 'noted');
      const notes = (await memory?.list()) ?? [];
      return { said: notes.map(({ key }) => key).join() };
    },
    { name: 'test.notes', memory: { ttl: 3600 } },
  ),
  aPack(({ input: { what } }) => ({ said: what }), { name: 'test.cached', memory: { cache: true, ttl: 60 } }),
  aPack(() => Promise.reject(new Error('/home/me/secret')), { name: 'test.fails' }),
  aPack(() => ({ nothing: 'said' }), { name: 'test.wrong' }),
];
