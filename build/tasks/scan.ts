/**
 * Runs electronegativity over what was built; its path is the argument. It reads the language of 2017, passes over in silence what it
 * cannot read, and knows windows by their bare name alone: so files are lowered and names bared first, and offences are planted beside
 * them. A scan that does not see those counts for nothing.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { transformSync } from '@swc/core';

/** What was looked at; why each is no fault stands in docs/releasing.md. */
const EXPLAINED = new Set([
  'CSP_GLOBAL_CHECK',
  'AUXCLICK_JS_CHECK main/index.js',
  'CONTEXT_ISOLATION_JS_CHECK main/index.js',
  'SANDBOX_JS_CHECK main/index.js',
  'DANGEROUS_FUNCTIONS_JS_CHECK main/chunks/assemble.js',
]);

const PLANTED = 'planted.js';
const OFFENCES = `const electron = require('electron');
new electron.BrowserWindow({ webPreferences: { nodeIntegration: true } });
electron.shell.openExternal(address);
`;
const SEEN = ['NODE_INTEGRATION_JS_CHECK planted.js', 'OPEN_EXTERNAL_JS_CHECK planted.js'];

/** Offline its library for requests throws where nobody can catch it, and no option keeps it from asking; all else still ends it. */
const CALM = `process.on('uncaughtException', (error) => {
  if (!/node_modules.(got|p-cancelable)./.test(error.stack)) throw error;
})`;

/** As much of SARIF as is read here. */
interface Report {
  readonly runs: readonly {
    readonly results: readonly {
      readonly ruleId: string;
      readonly locations: readonly { readonly physicalLocation: { readonly artifactLocation: { readonly uri: string } } }[];
    }[];
  }[];
}

function lowered(code: string, isModule: boolean): string {
  const parser = { syntax: 'ecmascript', explicitResourceManagement: true } as const;
  return transformSync(code, { jsc: { parser, target: 'es2017' }, isModule }).code.replaceAll(
    'electron.BrowserWindow',
    'BrowserWindow',
  );
}

/** What was built, as the scanner can read it, and without the part of a name that is another one at each build. */
function copyTo(app: string): void {
  for (const part of ['main', 'preload', 'renderer']) {
    for (const name of readdirSync(join('out', part), { recursive: true, encoding: 'utf8' })) {
      const script = /\.c?js$/.test(name);
      if (!script && !name.endsWith('.html')) continue;
      const from = join('out', part, name);
      const to = join(app, part, name.replace(/(-[\w-]{8})?\.c?js$/, '.js'));
      mkdirSync(dirname(to), { recursive: true });
      // Two chunks may have one name.
      const free = existsSync(to) ? to.replace(/\.js$/, `-${name.length}.js`) : to;
      if (script) writeFileSync(free, lowered(readFileSync(from, 'utf8'), name.endsWith('.js')));
      else cpSync(from, free);
    }
  }
  cpSync('package.json', join(app, 'package.json'));
  writeFileSync(join(app, PLANTED), lowered(OFFENCES, false));
}

const [scanner] = process.argv.slice(2);
if (scanner === undefined) throw new Error('Name the scanner: npm run scan -- <path of electronegativity>.');
const folder = mkdtempSync(join(tmpdir(), 'helmdeck-scan-'));
const report = join(folder, 'found.sarif');
try {
  copyTo(join(folder, 'app'));
  execFileSync(scanner, ['--input', join(folder, 'app'), '--output', report, '--relative'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(CALM)}` },
  });
  const { runs } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const found = runs.flatMap(({ results }) =>
    results.map(({ ruleId, locations: [at] }) => {
      const uri = at?.physicalLocation.artifactLocation.uri ?? '';
      return uri.endsWith('.js') ? `${ruleId} ${uri}` : ruleId;
    }),
  );
  for (const offence of SEEN) if (!found.includes(offence)) throw new Error(`The scan did not see what was planted: ${offence}.`);
  const own = [...new Set(found)].filter((finding) => !finding.endsWith(PLANTED)).toSorted();
  for (const finding of own) console.log(`${EXPLAINED.has(finding) ? 'explained' : 'NEW'}: ${finding}`);
  // Under an explanation of nothing the next offence of that name would be passed over.
  const gone = [...EXPLAINED].filter((finding) => !own.includes(finding));
  for (const finding of gone) console.log(`not found any more: ${finding}`);
  if (gone.length > 0 || own.some((finding) => !EXPLAINED.has(finding))) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}
