import { globSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import readRules from 'dependency-cruiser/config-utl/extract-depcruise-options';
import { describe, expect, test } from 'vitest';

const rules = await readRules('./.dependency-cruiser.js');

/** Runs dependency-cruiser on a `src` folder; the default is our own. */
async function look(baseDir = process.cwd()) {
  const { output } = await cruise(['src'], { ...rules, validate: true, baseDir });
  // Without a reporter the output is an object, never text.
  const { modules, summary } = output as ICruiseResult;
  return {
    modules: modules.map((module) => module.source).filter((source) => /^src\/.*\.tsx?$/.test(source)),
    offences: summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
    broken: [...new Set(summary.violations.map(({ rule }) => rule.name))],
  };
}

/** Runs dependency-cruiser on a `src` folder with the given files. */
async function plant(files: Record<string, string>) {
  using root = mkdtempDisposableSync(join(tmpdir(), 'architecture-'));
  for (const [name, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    mkdirSync(dirname(join(root.path, name)), { recursive: true });
    writeFileSync(join(root.path, name), text);
  }
  return await look(root.path);
}

describe('the modules under src', async () => {
  const found = await look();

  test('are all checked', () => {
    const ours = globSync('src/**/*.{ts,tsx}');
    expect(ours.length).toBeGreaterThan(0);
    expect(found.modules.toSorted()).toEqual(ours.toSorted());
  });

  test('break no rule', () => {
    expect(found.offences).toEqual([]);
  });
});

describe('a planted offence is reported', () => {
  const known = {
    'src/contract/fact.ts': '',
    'src/core/memory.ts': '',
    'src/core/clock.ts': `import './circle.ts';`,
    'src/listeners/rest.ts': '',
    'src/main/config.ts': '',
    'src/renderer/src/app.ts': '',
  };
  const value = (what: string) => `import { x } from '${what}'; x();`;
  const type = (what: string) => `import type { X } from '${what}'; export const x: X = 1;`;

  const offences: Record<string, [file: string, text: string][]> = {
    'contract-imports-only-zod': [
      ['src/contract/a.ts', value('node:fs')],
      ['src/contract/a.ts', value('express')],
      ['src/contract/a.ts', type('../core/memory.ts')],
    ],
    'core-imports-contract': [
      ['src/core/a.ts', type('../listeners/rest.ts')],
      ['src/core/packs/a.ts', value('../../main/config.ts')],
    ],
    'core-without-electron-http-mcp': [
      ['src/core/a.ts', value('electron')],
      ['src/core/a.ts', value('node:http')],
      ['src/core/a.ts', value('https')],
      ['src/core/a.ts', value('node:net')],
      ['src/core/a.ts', value('@modelcontextprotocol/sdk/server/index.js')],
      ['src/core/a.ts', `export async function a() { await using b = await import('electron'); return b; }`],
    ],
    'listeners-import-core': [['src/listeners/a.ts', value('../main/config.ts')]],
    'listeners-without-electron-sqlite': [
      ['src/listeners/a.ts', value('electron')],
      ['src/listeners/mcp/a.ts', value('better-sqlite3')],
    ],
    'main-without-renderer': [['src/main/a.ts', value('../renderer/src/app.ts')]],
    'electron-in-shell-only': [['src/main/roots/assemble.ts', value('electron')]],
    'preload-imports-types-only': [
      ['src/preload/index.ts', value('zod')],
      ['src/preload/index.ts', value('../contract/fact.ts')],
    ],
    'preload-imports-contract': [['src/preload/index.ts', type('../core/memory.ts')]],
    'window-imports-contract': [['src/renderer/src/a.tsx', type('../../core/memory.ts')]],
    'window-without-node': [['src/renderer/src/a.ts', value('node:fs')]],
    'window-without-zod': [
      ['src/renderer/src/a.ts', value('../../contract/fact.ts')],
      ['src/renderer/src/a.ts', value('zod')],
    ],
    'no-cycle': [['src/core/circle.ts', value('./clock.ts')]],
  };

  test.each(Object.entries(offences).flatMap(([rule, cases]) => cases.map(([file, text]) => ({ rule, file, text }))))(
    '$rule: $file with $text',
    async ({ rule, file, text }) => {
      const { broken } = await plant({ ...known, [file]: text });
      expect(broken).toContain(rule);
    },
  );

  test('for every rule', () => {
    expect(Object.keys(offences).toSorted()).toEqual(rules.ruleSet?.forbidden?.map(({ name }) => name).toSorted());
  });
});

test('imports that the layers allow are not reported', async () => {
  const { offences } = await plant({
    'src/contract/fact.ts': `import { z } from 'zod'; import { TTL } from './limits.ts'; z(TTL);`,
    'src/contract/limits.ts': 'export const TTL = 1;',
    'src/core/memory.ts': `import Database from 'better-sqlite3'; import { fact } from '../contract/fact.ts'; fact(Database);`,
    'src/listeners/rest-routes.ts': `import express from 'express'; import { memory } from '../core/memory.ts'; memory(express);`,
    'src/main/roots/index.ts': `import { app } from 'electron'; import { rest } from '../listeners/rest.ts'; app(rest);`,
    'src/main/shell/tray.ts': `import { Tray } from 'electron'; Tray();`,
    'src/preload/index.ts': `import { ipcRenderer } from 'electron'; import type { F } from '../contract/fact.ts'; ipcRenderer(1 as F);`,
    'src/renderer/src/app.tsx': `import { TTL } from '../../contract/limits.ts'; import type { F } from '../../contract/fact.ts'; TTL as F;`,
  });
  expect(offences).toEqual([]);
});
