import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/**
 * Files that get a process of their own, because they mock a module, or count what is open in the whole process. All other files
 * share processes: loading the same modules for each file took a seventh of the time of all tests.
 */
const ISOLATED = [
  'test/main/shell/{ipc,guard,login}.test.ts',
  'test/main/cli/{credential,key}.test.ts',
  'test/main/egress/network-packs.test.ts',
  'test/main/meaning/bundled-embedder.test.ts',
  'test/main/own-packs/loading.test.ts',
  'test/main/sidecar/{off,sidecar}.test.ts',
  'test/core/crypto/cipher-copies.test.ts',
  'test/core/operations/fair-scheduler.test.ts',
  'test/core/search/finder.test.ts',
  'test/listeners/{change-events,leftovers,listening,slow-connections}.test.ts',
  'test/listeners/mcp/sessions.test.ts',
];

/** Whether the tests of other stores run on a database. Then each file starts a server, and stops it at its end. */
const isOnServer = process.env['HELMDECK_TEST_STORE'] !== undefined;

export default defineConfig({
  test: {
    globalSetup: ['test/support/built.ts'],
    reporters: ['default', './test/support/reporter.ts'],
    // A focused test would silently skip the others.
    allowOnly: false,
    // Many test files mostly wait for a process or a page, so run more workers than cores.
    maxWorkers: 2 * availableParallelism(),
    projects: [
      project({ name: 'isolated', include: ISOLATED }),
      project({
        name: 'shared',
        include: ['test/**/*.test.ts'],
        exclude: [...ISOLATED, '**/node_modules/**'],
        isolate: isOnServer,
      }),
    ],
  },
});

function project(files: { name: string; include: string[]; exclude?: string[]; isolate?: boolean }) {
  return {
    test: {
      ...files,
      allowOnly: false,
      restoreMocks: true,
      // Long enough for a busy machine; a hang is still detected.
      testTimeout: 180_000,
      hookTimeout: 180_000,
      expect: { poll: { timeout: 45_000, interval: 20 } },
    },
  };
}
