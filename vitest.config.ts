import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/built.ts'],
    reporters: ['default', './test/support/reporter.ts'],
    // A focused test would silently skip the others.
    allowOnly: false,
    restoreMocks: true,
    // Long enough for a busy machine; a hang is still detected.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 45_000, interval: 20 } },
    // Many test files mostly wait for a process or a page, so run more workers than cores.
    maxWorkers: 2 * availableParallelism(),
  },
});
