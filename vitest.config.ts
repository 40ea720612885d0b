import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', './test/support/reporter.ts'],
    // A focused test would quietly leave the others out.
    allowOnly: false,
    restoreMocks: true,
  },
});
