// Dependencies point one way: contract ← core ← listeners ← main, contract ← preload, contract ← renderer.
// test/architecture.test.ts plants a violation of every rule. Add one there for a new rule.

import { Visitor } from '@swc/core/Visitor.js';

// dependency-cruiser's visitor for swc does not know `using` and stops at it. For imports, `using` equals `const`.
const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  return { ...statement, decls: this.visitVariableDeclarators(statement.decls) };
};

/** Matches imports of the packages, whether they resolve below node_modules or not. */
const packages = (...names) => `(^|node_modules/)(${names.join('|')})(/|$)`;

/** Forbids the modules of one folder of src to import from folders that are not in `mayImport`. */
const folder = (name, from, mayImport, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: `^src/${from}/` },
  to: { path: '^(src|test|build|bench)/', pathNot: `^src/(${[from, ...mayImport].join('|')})/` },
});

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'contract-imports-only-zod',
      comment: 'All sides use the contract, including the window. It may import only zod.',
      severity: 'error',
      from: { path: '^src/contract/' },
      to: { pathNot: ['^src/contract/', packages('zod')] },
    },
    folder(
      'core-imports-contract',
      'core',
      ['contract'],
      'Listeners import the core. The core must not import listeners, main or the window.',
    ),
    {
      name: 'core-without-electron-http-mcp',
      comment: 'The core must not use Electron, HTTP or MCP.',
      severity: 'error',
      from: { path: '^src/core/' },
      to: { path: [packages('electron', '@modelcontextprotocol'), '^(node:)?(http|https|http2|net|tls)$'] },
    },
    folder(
      'listeners-import-core',
      'listeners',
      ['core', 'contract'],
      'Main passes dependencies to the listeners. A listener must not import main.',
    ),
    {
      name: 'listeners-without-electron-sqlite',
      comment: 'A listener turns a request into a call of perform. It must not use Electron or SQLite.',
      severity: 'error',
      from: { path: '^src/listeners/' },
      to: { path: packages('electron', 'better-sqlite3') },
    },
    folder(
      'main-without-renderer',
      'main',
      ['listeners', 'core', 'contract'],
      'Main loads the built window, and must not import its sources.',
    ),
    {
      name: 'electron-in-shell-only',
      comment: 'Only main/shell, roots/index.ts and the preload may use Electron. The rest of main also runs headless.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/main/(roots/index\\.ts|shell/)', '^src/preload/'] },
      to: { path: packages('electron') },
    },
    {
      name: 'preload-imports-types-only',
      comment: 'The sandboxed preload may import only Electron, and types from the contract.',
      severity: 'error',
      from: { path: '^src/preload/' },
      to: { pathNot: ['^src/preload/', packages('electron')], dependencyTypesNot: ['type-only'] },
    },
    folder(
      'preload-imports-contract',
      'preload',
      ['contract'],
      'The preload passes calls of the window to main, and needs only the types of the contract.',
    ),
    folder('window-imports-contract', 'renderer', ['contract'], 'The window runs in Chromium, in Electron or in a browser.'),
    {
      name: 'window-without-node',
      comment: 'The window runs in a browser, without Node.',
      severity: 'error',
      from: { path: '^src/renderer/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'window-without-zod',
      comment: 'Main validates. The window may import types, and contract modules without schemas.',
      severity: 'error',
      from: { path: '^src/renderer/' },
      to: {
        path: ['^src/contract/', packages('zod')],
        pathNot: '^src/contract/(limits|names|units|failure|preview-in-parts|time-left)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-cycle',
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
