// Dependencies point one way: contract ← core ← listeners ← main, contract ← preload, contract ← renderer.
// test/architecture.test.ts plants an offence against each rule by its name: a new rule needs one there.

import { Visitor } from '@swc/core/Visitor.js';

// The visitor that the cruiser walks swc's tree with is older than `using` and stops at it; a `using` is a `const` in all we ask.
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
      comment: 'Both sides of every wire read the contract, the window too: zod and nothing else.',
      severity: 'error',
      from: { path: '^src/contract/' },
      to: { pathNot: ['^src/contract/', packages('zod')] },
    },
    folder('core-below-listeners', 'core', ['contract'], 'The core is used by listeners and knows none of them.'),
    {
      name: 'core-speaks-no-wire',
      comment: 'The core is plain Node and runs the same in every root: no Electron, no HTTP, no MCP.',
      severity: 'error',
      from: { path: '^src/core/' },
      to: { path: [packages('electron', 'hono', '@hono', '@modelcontextprotocol'), '^(node:)?(http|https|http2|net|tls)$'] },
    },
    folder('listeners-below-main', 'listeners', ['core', 'contract'], 'A listener is handed what it needs by main.'),
    {
      name: 'listeners-own-no-window-and-no-file',
      comment: 'A listener turns bytes into a call of perform and back; Electron and SQLite are behind that door.',
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
      comment: 'Whatever else main holds also runs headless, where there is no Electron.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/main/(roots/index\\.ts|shell/)', '^src/preload/'] },
      to: { path: packages('electron') },
    },
    {
      name: 'preload-carries-types-only',
      comment: 'The sandbox has Electron and no other module; of the contract the preload takes types.',
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
      comment: 'There is no Node in a browser.',
      severity: 'error',
      from: { path: '^src/renderer/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'window-carries-no-zod',
      comment: 'Main parses; the window takes types, and the contract files that hold no schema.',
      severity: 'error',
      from: { path: '^src/renderer/' },
      to: {
        path: ['^src/contract/', packages('zod')],
        pathNot: '^src/contract/(limits|failure|preview-in-parts|time-left)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-circle',
      comment: 'Two modules that need each other are one module, or three.',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true },
    },
  ],
  options: {
    // Under TypeScript 7, which has no compiler API, the default parser sees no module at all and reports success.
    parser: 'swc',
    // Type imports count: a type from the wrong folder is the wrong direction too.
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
