import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { documents } from '../build/tasks/docs.ts';
import { SETTINGS } from '../src/main/config/settings-table.ts';

test.each(Object.entries(documents))('%s is what `npm run docs` writes today', async (path, write) => {
  expect(readFileSync(path, 'utf8')).toBe(await write());
});

test('docs/dependencies.md has a line for every package in its present version, and no other', () => {
  // npm's own file; its shape is its promise.
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, Record<string, string>>;
  const wanted = { ...manifest['dependencies'], ...manifest['optionalDependencies'], ...manifest['devDependencies'] };
  const rows = readFileSync('docs/dependencies.md', 'utf8').matchAll(/^\| `(?<name>[^`]+)` +\| (?<version>\S+) /gm);
  const told = [...rows].map(({ groups }) => `${groups?.['name']} ${groups?.['version']}`);
  // An alias is written npm:name@version.
  const known = Object.entries(wanted).map(([name, version]) => `${name} ${version.replace(/^npm:.+@/, '')}`);
  expect(told.toSorted()).toEqual(known.toSorted());
});

test('docs/settings.md has a line for every setting, and no other line', () => {
  const rows = readFileSync('docs/settings.md', 'utf8').matchAll(/^\| (?<names>`HELMDECK_[^|]+)\|/gm);
  const told = [...rows].flatMap(({ groups }) => groups?.['names']?.match(/\w+/g) ?? []);
  expect(told.toSorted()).toEqual(Object.keys(SETTINGS).toSorted());
});

test('docs/settings.md names the default of every setting that has one', () => {
  const text = readFileSync('docs/settings.md', 'utf8');
  for (const [name, setting] of Object.entries(SETTINGS)) {
    if (!('default' in setting)) continue;
    const row = text.split('\n').find((line) => line.startsWith('| `HELMDECK_') && line.includes(`\`${name}\``));
    expect(row).toMatch(`| \`${setting.default}\` |`);
  }
});
