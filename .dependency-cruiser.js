// Dependencies point one way: contract ← core ← listeners ← main, contract ← preload, contract ← renderer.
// test/architecture.test.ts plants an offence for every rule. Add one there for a new rule.

import { Visitor } from '@swc/core/Visitor.js';

// dependency-cruiser's visitor for swc does not know `using` and stops at it. For imports, `using` equals `const`.
const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  return { ...statement, decls: this.visitVariableDeclarators(statement.decls) };
};

/** A package by its name: as resolved below node_modules, or bare where it is not installed. */
const packages = (...names) => `(^|node_modules/)(${names.join('|')})(/|$)`;

/** One of our folders leaning on another that it must not know. */
const folder = (name, from, mayKnow, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: `^src/${from}/` },
  to: { path: '^(src|test|build|bench)/', pathNot: `^src/(${[from, ...mayKnow].join('|')})/` },
});

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'contract-stands-alone',
      comment: 'All sides use the contract, including the window. It may import only zod.',
      severity: 'error',
      from: { path: '^src/contract/' },
      to: { pathNot: ['^src/contract/', packages('zod')] },
    },
    folder('core-below-listeners', 'core', ['contract'], 'The core is used by listeners and knows none of them.'),
    {
      name: 'core-speaks-no-wire',
      comment: 'The core is plain Node: no Electron, no HTTP, no MCP.',
      severity: 'error',
      from: { path: '^src/core/' },
      to: { path: [packages('electron', 'hono', '@hono', '@modelcontextprotocol'), '^(node:)?(http|https|http2|net|tls)$'] },
    },
    folder('listeners-below-main', 'listeners', ['core', 'contract'], 'A listener is handed what it needs by main.'),
    {
      name: 'listeners-own-no-window-and-no-file',
      comment: 'A listener turns a request into a call of perform. It must not use Electron or SQLite.',
      severity: 'error',
      from: { path: '^src/listeners/' },
      to: { path: packages('electron', 'better-sqlite3') },
    },
    folder(
      'main-beside-the-window',
      'main',
      ['listeners', 'core', 'contract'],
      'Main loads the built window; it imports none of it.',
    ),
    {
      name: 'electron-in-the-shell',
      comment: 'Only the shell may use Electron. The rest of main also runs headless.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/main/(roots/index\\.ts|shell/)', '^src/preload/'] },
      to: { path: packages('electron') },
    },
    {
      name: 'preload-carries-types-only',
      comment: 'The sandboxed preload may import only Electron, and types from the contract.',
      severity: 'error',
      from: { path: '^src/preload/' },
      to: { pathNot: ['^src/preload/', packages('electron')], dependencyTypesNot: ['type-only'] },
    },
    folder('preload-knows-the-contract', 'preload', ['contract'], 'The preload is a pipe between contract and window.'),
    folder(
      'window-knows-the-contract',
      'renderer',
      ['contract'],
      'The window runs in Chromium, over HTTP as well as in Electron.',
    ),
    {
      name: 'window-has-no-node',
      comment: 'The window runs in a browser, without Node.',
      severity: 'error',
      from: { path: '^src/renderer/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'window-carries-no-zod',
      comment: 'Main validates. The window may import types, and contract modules without schemas.',
      severity: 'error',
      from: { path: '^src/renderer/' },
      to: {
        path: ['^src/contract/', packages('zod')],
        pathNot: '^src/contract/(limits|names|failure|preview-in-parts|time-left)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-circle',
      comment: 'Modules must not import each other in a cycle. Merge them, or move the shared part to a third module.',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true },
    },
  ],
  options: {
    // The default parser needs TypeScript's compiler API, which TypeScript 7 lacks. It would find no modules and report success.
    parser: 'swc',
    // Check type imports too.
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
