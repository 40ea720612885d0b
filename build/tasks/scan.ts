/**
 * Runs electronegativity on the build. Its path is the argument. The scanner understands only ES2017, silently skips other files, and
 * recognises windows only by the bare name `BrowserWindow`. So the build is lowered and its names are rewritten first. Planted offences
 * prove that the scanner reads the result; a scan that does not report them fails.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { transformSync } from '@swc/core';

/** Reviewed findings. docs/releasing.md explains why each one is not a fault. */
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
const PLANTED_FINDINGS = ['NODE_INTEGRATION_JS_CHECK planted.js', 'OPEN_EXTERNAL_JS_CHECK planted.js'];

/** Without a network the scanner's HTTP library throws uncaught errors, and no option disables its requests. Other errors still end the scan. */
const IGNORE_NETWORK_ERRORS = `process.on('uncaughtException', (error) => {
  if (!/node_modules.(got|p-cancelable)./.test(error.stack)) throw error;
})`;

/** The part of SARIF that this script reads. */
interface Report {
  readonly runs: readonly {
    readonly results: readonly {
      readonly ruleId: string;
      readonly locations: readonly { readonly physicalLocation: { readonly artifactLocation: { readonly uri: string } } }[];
    }[];
  }[];
}

function lowerSyntax(code: string, isModule: boolean): string {
  const parser = { syntax: 'ecmascript', explicitResourceManagement: true } as const;
  return transformSync(code, { jsc: { parser, target: 'es2017' }, isModule }).code.replaceAll(
    'electron.BrowserWindow',
    'BrowserWindow',
  );
}

/** Copies the build in a form that the scanner reads, without the content hashes in file names. */
function copyTo(app: string): void {
  for (const part of ['main', 'preload', 'renderer']) {
    for (const name of readdirSync(join('out', part), { recursive: true, encoding: 'utf8' })) {
      const script = /\.c?js$/.test(name);
      if (!script && !name.endsWith('.html')) continue;
      const from = join('out', part, name);
      const to = join(app, part, name.replace(/(-[\w-]{8})?\.c?js$/, '.js'));
      mkdirSync(dirname(to), { recursive: true });
      // Without their hashes, two chunks can have the same name.
      const free = existsSync(to) ? to.replace(/\.js$/, `-${name.length}.js`) : to;
      if (script) writeFileSync(free, lowerSyntax(readFileSync(from, 'utf8'), name.endsWith('.js')));
      else cpSync(from, free);
    }
  }
  cpSync('package.json', join(app, 'package.json'));
  writeFileSync(join(app, PLANTED), lowerSyntax(OFFENCES, false));
}

const [scanner] = process.argv.slice(2);
if (scanner === undefined)
  throw new Error('The path of the scanner is missing. Run: npm run scan -- <path of electronegativity>.');
const folder = mkdtempSync(join(tmpdir(), 'helmdeck-scan-'));
const report = join(folder, 'found.sarif');
try {
  copyTo(join(folder, 'app'));
  execFileSync(scanner, ['--input', join(folder, 'app'), '--output', report, '--relative'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(IGNORE_NETWORK_ERRORS)}` },
  });
  const { runs } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const found = runs.flatMap(({ results }) =>
    results.map(({ ruleId, locations: [at] }) => {
      const uri = at?.physicalLocation.artifactLocation.uri ?? '';
      return uri.endsWith('.js') ? `${ruleId} ${uri}` : ruleId;
    }),
  );
  for (const offence of PLANTED_FINDINGS)
    if (!found.includes(offence)) throw new Error(`The scan did not report the planted offence ${offence}.`);
  const own = [...new Set(found)].filter((finding) => !finding.endsWith(PLANTED)).toSorted();
  for (const finding of own) console.log(`${EXPLAINED.has(finding) ? 'explained' : 'NEW'}: ${finding}`);
  // An explanation without a finding would hide the next offence of that name.
  const gone = [...EXPLAINED].filter((finding) => !own.includes(finding));
  for (const finding of gone) console.log(`no longer found: ${finding}`);
  if (gone.length > 0 || own.some((finding) => !EXPLAINED.has(finding))) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}
