import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';

interface Package {
  resolved?: string;
  integrity?: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

// Safe: npm writes both files and documents their shape.
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Package & { overrides: Record<string, string> };
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Package> };
const installed = Object.entries(lock.packages).filter(([path]) => path !== '');

describe('the lock file', () => {
  test('contains every platform package of every dependency', () => {
    const names = new Set(installed.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)));
    const missing = Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter((name) => !names.has(name))
        .map((name) => `${name}, wanted by ${path || 'package.json'}`),
    );
    expect(missing).toEqual([]);
  });

  test('has a hash for every package, and no host name', () => {
    expect(installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path)).toEqual([]);
    expect(installed.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
  });
});

test('every version in package.json is exact', () => {
  const { dependencies, devDependencies, optionalDependencies, overrides } = manifest;
  const wanted = { ...dependencies, ...devDependencies, ...optionalDependencies, ...overrides };
  expect(Object.entries(wanted).filter(([, version]) => !/^(npm:@?[\w./-]+@)?\d+\.\d+\.\d+(-beta\.\d+)?$/.test(version))).toEqual(
    [],
  );
});

test('the bundled SQLite is 3.51.3 or later, the first without the WAL-reset bug that could corrupt a file', () => {
  const db = new Database(':memory:');
  const version = String(db.prepare('select sqlite_version()').pluck().get());
  db.close();
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  expect(major * 1_000_000 + minor * 1000 + patch).toBeGreaterThanOrEqual(3_051_003);
});
