import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bundle } from '../../../build/tasks/bundle.ts';
import { findClaudeBundle } from '../../../src/main/roots/installation.ts';

test('the bundle for Claude Desktop is a file of the build (R-BUNDLE-07)', () => {
  expect(readFileSync(findClaudeBundle())).toEqual(bundle());
});
