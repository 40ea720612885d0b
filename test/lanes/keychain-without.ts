import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { KeyState } from '../../src/contract/status.ts';
import { timed } from './faults/timed.ts';
import { check } from './keychain-check.ts';
import { until } from './keychain-keyring.ts';
import {
  assertState,
  copyOf,
  fact,
  factsOf,
  FACTS,
  fingerprint,
  keychain,
  open,
  type Places,
  recall,
  refused,
} from './keychain-memory.ts';

interface Without {
  readonly state: KeyState['at'];
  readonly places?: Places;
  /** The longest time for the first start, less than the timeout of a request. Later starts find the request already sent. */
  readonly within?: number;
  /** Makes the key available again while the program runs. */
  readonly mend?: () => unknown;
}

/** Checks a memory whose key is unavailable, and its recovery. */
export async function withoutKey(what: string, { state, places = keychain, within = 3000, mend }: Without): Promise<void> {
  const [folder, waiting, forgetful] = [copyOf('used'), copyOf('waiting'), copyOf('forgetful')];
  const before = fingerprint(folder);
  const { result: store, ms } = await timed(() => open(folder, places));

  await check(`R-KEY-05 R-KEY-06 ${what}: reported as ${state}, with a remedy`, () => {
    assert.equal(store.status().kept, 'file');
    const why = assertState(store.status().key, state);
    assert.ok(ms <= within, `the start took ${ms} ms`);
    return `after ${ms} ms: ${why}`;
  });
  await check(`R-KEY-04 ${what}: reads and writes fail with key_unavailable, and requests that need no key succeed`, async () => {
    const facts = factsOf(store);
    await refused(facts.get(fact(0).key));
    await refused(facts.put(fact(FACTS)));
    await refused(facts.page({ sort: 'updated', limit: 5 }));
    await refused(facts.change(fact(0).key, { category: 'other', author: fact(0).author }));
    await refused(store.forget('me', { kinds: ['fact'], key: fact(0).key }));
    await refused(store.upkeep?.rotate() ?? Promise.resolve());
    await refused(store.upkeep?.makeRecoveryKey() ?? Promise.resolve());
    assert.equal(await facts.count(), FACTS);
  });
  await check(`R-KEY-04 ${what}: memory.db does not change, while open or after closing`, async () => {
    assert.equal(fingerprint(folder), before);
    await store[Symbol.asyncDispose]();
    assert.equal(fingerprint(folder), before);
  });
  await check(`R-FORGET-11 ${what}: all facts can be forgotten`, async () => {
    await using copy = await open(forgetful, places);
    const { deleted, purged } = await copy.forget('me', { kinds: ['fact'] });
    assert.deepEqual({ deleted, purged }, { deleted: FACTS, purged: true });
    assert.equal(await factsOf(copy).count(), 0);
  });
  if (!mend) return;

  await using asked = await open(folder, places);
  await using unasked = await open(waiting, places);
  assertState(asked.status().key, state);
  assertState(unasked.status().key, state);
  await mend();
  await check(`R-KEY-08 ${what}: ok again after unlock, without a restart`, async () => {
    assertState(await asked.unlock(), 'ok');
    await recall(asked, FACTS);
    await factsOf(asked).put(fact(FACTS));
  });
  await check(`R-KEY-08 ${what}: ok again with the next request, without a restart`, async () => {
    const from = performance.now();
    await until(() => answers(unasked), 'no request succeeded');
    await recall(unasked, FACTS);
    return `${Math.round(performance.now() - from)} ms after the key was back`;
  });
}

async function answers(store: Awaited<ReturnType<typeof open>>): Promise<boolean> {
  await wait(100);
  return factsOf(store)
    .get(fact(0).key)
    .then(
      () => true,
      () => false,
    );
}
