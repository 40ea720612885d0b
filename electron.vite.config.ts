import { basename } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'electron-vite';
import { BUNDLE, bundle } from './build/tasks/bundle.ts';

export default defineConfig({
  main: {
    build: {
      rollupOptions: {
        input: {
          index: 'src/main/index.ts',
          headless: 'src/main/headless.ts',
          cli: 'src/main/cli.ts',
          'own-pack': 'src/main/own-packs/child.ts',
        },
        // An ES module makes Node look at everything that its own modules export, and load what nobody uses of them.
        output: { format: 'cjs', entryFileNames: '[name].cjs', chunkFileNames: 'chunks/[name]-[hash].cjs' },
      },
      externalizeDeps: {
        // Left out by itself is only what package.json requires; this one is optional there, and its binary cannot be bundled.
        include: ['keytar'],
        // Of these a start needs little: one file with that much is read faster than their hundred.
        exclude: ['zod', '@modelcontextprotocol/sdk', 'smol-toml'],
      },
    },
  },
  preload: {
    build: {
      // The sandbox knows no modules.
      rollupOptions: { input: { index: 'src/preload/index.ts' }, output: { format: 'cjs', entryFileNames: '[name].cjs' } },
    },
  },
  renderer: {
    plugins: [
      react(),
      {
        name: 'bundle-for-claude-desktop',
        generateBundle() {
          this.emitFile({ type: 'asset', fileName: basename(BUNDLE), source: bundle() });
        },
      },
    ],
    build: {
      minify: true,
      // The window's policy allows no script but ours, and every Chromium it meets preloads modules by itself.
      modulePreload: { polyfill: false },
      rollupOptions: { input: 'src/renderer/index.html' },
    },
  },
});
