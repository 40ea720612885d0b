import { basename } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'electron-vite';
import { BUNDLE, bundle } from './build/tasks/bundle.ts';
import { processFiles } from './build/tasks/process-files.ts';

export default defineConfig({
  main: {
    plugins: [
      {
        // V8 stores and reads a source file with any non-ASCII character as two bytes per character, which is slower. Outside comments
        // such characters occur only in strings and patterns, where an escape is equivalent.
        name: 'in-ascii',
        generateBundle(_options, files) {
          for (const file of Object.values(files)) {
            if (file.type !== 'chunk') continue;
            file.code = file.code.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
          }
        },
      },
      {
        name: 'process-files',
        async generateBundle() {
          for (const file of await processFiles()) this.emitFile({ type: 'asset', ...file });
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
        // CommonJS starts faster: Node would analyse the exports of every ES module and load unused ones.
        output: { format: 'cjs', entryFileNames: '[name].cjs', chunkFileNames: 'chunks/[name]-[hash].cjs' },
      },
      externalizeDeps: {
        // Only regular dependencies are external by default. keytar is optional, and its binary cannot be bundled.
        include: ['keytar'],
        // The program uses a small part of these packages. One bundled file loads faster than their hundred files.
        exclude: ['zod', '@modelcontextprotocol/sdk', 'smol-toml', 'pg'],
      },
    },
  },
  preload: {
    build: {
      // A sandboxed preload cannot be an ES module.
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
      // The window's content security policy forbids the inline polyfill, and Chromium supports module preload.
      modulePreload: { polyfill: false },
      rollupOptions: { input: 'src/renderer/index.html' },
    },
  },
});
