import { describe, expect, test } from 'vitest';
import { openStore } from '../../../src/core/store/open-store.ts';
import { DAY, manualClock } from '../../support/clock.ts';
import { aDraft, ANOTHER_KEY, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

/** A memory that was last used when the clock differed from now by this much. */
async function usedAt(offset: number): Promise<string> {
  const folder = tempFolder();
  const clock = manualClock(Date.now() + offset);
  await using store = await openStore({ folder, clock, sources: withKey() });
  await store.space({ subject: 'me' }, 'fact').put(aDraft({ key: 'long', value: 'long', lifetime: 300 * DAY }));
  await store.space({ subject: 'me' }, 'fact').put(aDraft({ key: 'short', value: 'short', lifetime: 30 * DAY }));
  return folder;
}

describe('a clock far ahead of the last recorded time', () => {
  test('is reported with a remedy by status, doctor and clock status (R-TIME-03)', async () => {
    const folder = await usedAt(-60 * DAY);
    const told = /the clock of this machine says .*, but this memory was last used on /;
    const { code, out } = await runCli(['clock', 'status'], { folder });
    expect(code).toBe(1);
    expect(out).toMatch(told);
    expect(out).toContain('helmdeck-memory clock trust');
    expect((await runCli(['status'], { folder })).out).toMatch(told);
    const { findings } = JSON.parse((await runCli(['doctor', '--json'], { folder })).out) as {
      findings: Record<string, string>[];
    };
    expect(findings).toContainEqual({
      check: 'clock',
      state: 'warn',
      says: expect.stringMatching(/^The clock of this machine says/) as string,
      remedy: expect.stringContaining('helmdeck-memory clock trust') as string,
    });
  });

  test('is trusted only after the owner confirms it (R-TIME-09)', async () => {
    const folder = await usedAt(-60 * DAY);
    expect(await runCli(['clock', 'trust'], { folder })).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes') as string,
    });
    const asked = await runCli(['clock', 'trust'], { folder, terminal: true, input: 'n\n' });
    expect(asked.err).toMatch(/Is that right\? 1 fact that expired before then will be deleted permanently/);
    expect(asked.code).toBe(1);
    expect((await runCli(['clock', 'status'], { folder })).code).toBe(1);
    expect(await runCli(['clock', 'trust', '--yes'], { folder })).toMatchObject({ code: 0 });
    expect(await runCli(['clock', 'status'], { folder })).toMatchObject({ code: 0, out: 'ok\n' });
    expect(await runCli(['recall', 'long'], { folder })).toMatchObject({ code: 0, out: 'long\n' });
    expect(await runCli(['recall', 'short'], { folder })).toMatchObject({ code: 3 });
  });
});

test('a recorded time ahead of the clock is reported and corrected (R-TIME-09)', async () => {
  const folder = await usedAt(400 * DAY);
  const { code, out } = await runCli(['clock', 'status'], { folder });
  expect(code).toBe(1);
  expect(out).toMatch(/^behind: the clock of this machine says .*, but this memory has already recorded /);
  const before = JSON.parse((await runCli(['token', 'mint', 'one', '--json'], { folder })).out) as { expires_at: string };
  expect(Date.parse(before.expires_at)).toBeGreaterThan(Date.now() + 400 * DAY);
  expect(await runCli(['clock', 'trust', '--yes'], { folder })).toMatchObject({ code: 0 });
  expect(await runCli(['clock', 'status'], { folder })).toMatchObject({ code: 0 });
  expect((await runCli(['recall', 'long'], { folder })).out).toBe('long\n');
});

test('a confirmation for a different time is refused (R-TIME-09)', async () => {
  const folder = await usedAt(-60 * DAY);
  const trusted = await runCli(['clock', 'trust', '--yes'], { folder, now: Date.now() + DAY });
  expect(trusted).toMatchObject({ code: 1, err: expect.stringContaining('must match the clock of this machine') as string });
});

test('a wrong key is not reported as a clock problem (R-TIME-03, R-KEY-07)', async () => {
  const folder = await usedAt(0);
  const environment = { HELMDECK_MEMORY_KEY: ANOTHER_KEY };
  const { out } = await runCli(['status'], { folder, environment });
  expect(out).toContain('mismatch');
  expect(out).not.toMatch(/clock|jumped|purge/);
  const { findings } = JSON.parse((await runCli(['doctor', '--json'], { folder, environment })).out) as {
    findings: { check: string }[];
  };
  expect(findings.map(({ check }) => check)).toContain('key');
  expect(findings.map(({ check }) => check)).not.toContain('clock');
  expect((await runCli(['clock', 'status'], { folder, environment })).out).toContain('the key of the memory is unavailable');
});
