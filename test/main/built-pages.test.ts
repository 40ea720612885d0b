import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bundle } from '../../build/tasks/bundle.ts';
import { findBuiltBundle } from '../../src/main/built-pages.ts';

test('the bundle for Claude Desktop is a file that came with the build (R-BUNDLE-07)', () => {
  expect(readFileSync(findBuiltBundle())).toEqual(bundle());
});
