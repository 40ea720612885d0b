import { defineConfig } from 'electron-vite';

export default defineConfig({
  main: {
    build: {
      rollupOptions: { input: { headless: 'src/main/headless.ts', cli: 'src/main/cli.ts' } },
      // Left out by itself is only what package.json requires; this one is optional there, and its binary cannot be bundled.
      externalizeDeps: { include: ['keytar'] },
    },
  },
});
