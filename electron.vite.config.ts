import { basename } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'electron-vite';
import { BUNDLE, bundle } from './build/tasks/bundle.ts';
import { ownPackFiles } from './build/tasks/own-pack.ts';

export default defineConfig({
  main: {
    plugins: [
      {
        // A source with a single letter beyond ASCII is kept in two bytes a letter, and is read the slower for it. Comments apart,
        // such letters stand in strings and patterns, where an escape means the same; in String.raw too, as all of those that hold
        // one become patterns.
        name: 'in-ascii',
        generateBundle(_options, files) {
          for (const file of Object.values(files)) {
            if (file.type !== 'chunk') continue;
            file.code = file.code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
          }
        },
      },
      {
        name: 'own-packs',
        async generateBundle() {
          for (const file of await ownPackFiles()) this.emitFile({ type: 'asset', ...file });
        },
      },
    ],
    build: {
      rollupOptions: {
        input: {
          index: 'src/main/roots/index.ts',
          headless: 'src/main/roots/headless.ts',
          cli: 'src/main/roots/cli.ts',
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
