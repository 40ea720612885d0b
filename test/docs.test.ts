import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { documents } from '../build/tasks/docs.ts';
import { SETTINGS } from '../src/main/config/settings-table.ts';

test.each(Object.entries(documents))('%s matches the output of `npm run docs`', async (path, write) => {
  expect(readFileSync(path, 'utf8')).toBe(await write());
});

test('docs/dependencies.md has a row for every package in its current version, and no other row', () => {
  // Safe: npm writes this file and documents its shape.
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, Record<string, string>>;
  const wanted = { ...manifest['dependencies'], ...manifest['optionalDependencies'], ...manifest['devDependencies'] };
  const rows = readFileSync('docs/dependencies.md', 'utf8').matchAll(/^\| `(?<name>[^`]+)` +\| (?<version>\S+) /gm);
  const told = [...rows].map(({ groups }) => `${groups?.['name']} ${groups?.['version']}`);
  // npm writes an alias as npm:name@version.
  const known = Object.entries(wanted).map(([name, version]) => `${name} ${version.replace(/^npm:.+@/, '')}`);
  expect(told.toSorted()).toEqual(known.toSorted());
});

test('docs/settings.md has a row for every setting, and no other row', () => {
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
