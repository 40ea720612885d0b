import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/built.ts'],
    reporters: ['default', './test/support/reporter.ts'],
    // A focused test would quietly leave the others out.
    allowOnly: false,
    restoreMocks: true,
    // What hangs is found all the same; a machine that is busy with other things fails nothing.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 45_000, interval: 20 } },
    // Many files wait for most of their time: for a process, a page, a clock that cannot be set.
    maxWorkers: 2 * availableParallelism(),
  },
});
