import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Finding } from '../../../src/main/doctor/finding.ts';
import { examineOpenClaw } from '../../../src/main/doctor/openclaw.ts';
import { createServedHome } from '../../support/clients.ts';
import { aCaller } from '../../support/memory.ts';
import { aHomeWithOpenClaw, CLIENT } from '../../support/openclaw.ts';

async function connected() {
  const home = await aHomeWithOpenClaw();
  await home.connections.connect(CLIENT);
  return { ...home, examine: () => examineOpenClaw(home.host, home.served.folder) };
}

const statesOf = (findings: readonly Finding[]): string[] => findings.map(({ check, state }) => `${check} ${state}`);

const found = (findings: readonly Finding[], check: string): Finding | undefined => findings.find((one) => one.check === check);

describe('the doctor of OpenClaw (R-CLAW-13)', () => {
  test('finds nothing wrong with one that is connected, and leaves nothing of what it tried', async () => {
    const { examine, served } = await connected();
    const findings = await examine();
    expect(statesOf(findings)).toEqual(['openclaw ok', 'config ok', 'tools ok', 'qmd ok', 'search ok']);
    expect(await served.perform(aCaller({ subject: 'me' }), 'list', {})).toMatchObject({ facts: [] });
  });

  test('says that it is not there, not connected, or lacks its plugin, and what to do', async () => {
    const none = await createServedHome();
    expect(await examineOpenClaw(none.host, none.served.folder)).toMatchObject([
      { state: 'bad', remedy: expect.stringContaining('Install it') },
    ]);
    const { host, connections, plugin, served } = await aHomeWithOpenClaw();
    expect(found(await examineOpenClaw(host, served.folder), 'config')).toMatchObject({
      state: 'bad',
      remedy: expect.stringContaining('helmdeck-memory connect openclaw'),
    });
    await connections.connect(CLIENT);
    rmSync(plugin, { recursive: true });
    expect(found(await examineOpenClaw(host, served.folder), 'config')).toMatchObject({
      state: 'bad',
      says: expect.stringContaining('missing'),
    });
  });

  test('says when its gateway does not run, and when its search does not find us', async () => {
    const { examine, put, home } = await connected();
    put('deaf', '');
    expect(found(await examine(), 'search')).toMatchObject({ state: 'bad', says: expect.stringContaining('no gateway') });
    rmSync(join(home, 'deaf'));
    put('blind', '');
    expect(found(await examine(), 'search')).toMatchObject({ state: 'bad', says: expect.stringContaining('does not find') });
  });

  test('says when the memory does not run', async () => {
    const { examine, served } = await connected();
    await served.listener.close();
    expect(statesOf(await examine())).toEqual(['openclaw ok', 'config ok', 'tools bad', 'qmd bad', 'search bad']);
  });

  test('tells of keys that its OpenClaw does not start over, and of a search by QMD that is missing or kept out', async () => {
    const { examine, config, mcporter, host } = await connected();
    writeFileSync(config, readFileSync(config, 'utf8').replace('"search":', '"backend": "qmd", "search":'));
    expect(found(await examine(), 'config')).toMatchObject({ state: 'warn', says: expect.stringContaining('memory.backend') });
    rmSync(mcporter);
    expect(found(await examine(), 'qmd')).toMatchObject({ state: 'warn', says: expect.stringContaining(mcporter) });
    const environment = host.environment as Record<string, string>;
    for (const [name, off] of [
      ['OPENCLAW_QMD_ENABLED', 'false'],
      ['HELMDECK_OPENCLAW_QMD', 'off'],
    ] as const) {
      environment[name] = off;
      expect(found(await examine(), 'qmd')).toMatchObject({ state: 'ok', says: expect.stringContaining('turns it off') });
      delete environment[name];
    }
  });

  test('does not contradict the program where only its own environment kept mcporter out', async () => {
    const home = await aHomeWithOpenClaw();
    const environment = home.host.environment as Record<string, string>;
    environment['OPENCLAW_QMD_ENABLED'] = 'false';
    await home.connections.connect(CLIENT);
    delete environment['OPENCLAW_QMD_ENABLED'];
    const findings = await examineOpenClaw(home.host, home.served.folder);
    expect(found(findings, 'qmd')).toMatchObject({ state: 'ok', says: expect.stringContaining('connected without the search') });
  });
});
