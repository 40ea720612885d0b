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
  test('finds no problem if OpenClaw is connected, and leaves no test fact behind', async () => {
    const { examine, served } = await connected();
    const findings = await examine();
    expect(statesOf(findings)).toEqual(['openclaw ok', 'config ok', 'tools ok', 'qmd ok', 'search ok']);
    expect(await served.perform(aCaller({ subject: 'me' }), 'list', {})).toMatchObject({ facts: [] });
  });

  test('reports that OpenClaw is missing, not connected or without the plugin, with a remedy', async () => {
    const none = await createServedHome();
    expect(await examineOpenClaw(none.host, none.served.folder)).toMatchObject([
      { state: 'bad', remedy: expect.stringContaining('Install OpenClaw') },
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

  test('reports a stopped gateway, and a search that does not find the fact', async () => {
    const { examine, put, home } = await connected();
    put('deaf', '');
    expect(found(await examine(), 'search')).toMatchObject({ state: 'bad', says: expect.stringContaining('no gateway') });
    rmSync(join(home, 'deaf'));
    put('blind', '');
    expect(found(await examine(), 'search')).toMatchObject({ state: 'bad', says: expect.stringContaining('does not find') });
  });

  test('reports that the program is not running', async () => {
    const { examine, served } = await connected();
    await served.listener.close();
    expect(statesOf(await examine())).toEqual(['openclaw ok', 'config ok', 'tools bad', 'qmd bad', 'search bad']);
  });

  test('reports configuration keys that stop OpenClaw, and a QMD search that is missing or turned off', async () => {
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

  test('reports no problem if only the environment of the program turned mcporter off', async () => {
    const home = await aHomeWithOpenClaw();
    const environment = home.host.environment as Record<string, string>;
    environment['OPENCLAW_QMD_ENABLED'] = 'false';
    await home.connections.connect(CLIENT);
    delete environment['OPENCLAW_QMD_ENABLED'];
    const findings = await examineOpenClaw(home.host, home.served.folder);
    expect(found(findings, 'qmd')).toMatchObject({ state: 'ok', says: expect.stringContaining('connected without the search') });
  });
});
