import { randomBytes } from 'node:crypto';
import { stripVTControlCharacters } from 'node:util';
import { readConfigFile } from '../connect/config-file.ts';
import type { ClientEntry, LocalMachine } from '../connect/connector.ts';
import { json5 } from '../connect/json-text.ts';
import { lookAtMcporter, mcporterEntry, wantsMcporter } from '../connect/openclaw/mcporter.ts';
import { openClaw } from '../connect/openclaw/openclaw.ts';
import { runOpenClaw, findOpenClaw } from '../connect/openclaw/program.ts';
import { Records } from '../connect/records.ts';
import { withBridge, type EntryContext, verify, whyOf } from '../connect/verify.ts';
import { bad, failed, type Finding, ok, warn } from './finding.ts';

const CONNECT = 'Connect OpenClaw again with: helmdeck-memory connect openclaw';
const CHECK_PROGRAM = 'Check Helmdeck Memory with: helmdeck-memory doctor';
/** Seconds until the test fact expires, in case the doctor cannot delete the fact after the test. */
const TEST_FACT_SECONDS = 3600;

/** Checks OpenClaw step by step: its configuration, its tools, mcporter, and a search for a test fact. */
export async function examineOpenClaw(machine: LocalMachine, folder: string): Promise<Finding[]> {
  const { program, version = 'of an unknown version', config, installed } = findOpenClaw(machine);
  if (!installed)
    return [bad('openclaw', 'OpenClaw was not found on this machine.', 'Install OpenClaw from https://openclaw.ai.')];
  if (program === undefined) {
    return [bad('openclaw', 'The program openclaw was not found in the PATH.', 'Add the folder of openclaw to the PATH.')];
  }
  const found = ok('openclaw', `OpenClaw ${version} is at ${program}.`);
  try {
    const { findings, entry } = await entryFindings(machine, config);
    if (!entry) return [found, ...findings];
    const context = { machine, recorded: new Records(folder).read(openClaw.id)?.entry };
    const qmd = await qmdFindings(context, folder, entry);
    return [found, ...findings, await toolsFinding(context, entry), ...qmd, await searchFinding(context, entry)];
  } catch (error) {
    return [found, failed('config', error)];
  }
}

async function entryFindings(machine: LocalMachine, config: string): Promise<{ findings: Finding[]; entry?: ClientEntry }> {
  const old = oldKeys(readConfigFile(config)?.text ?? '');
  const findings =
    old.length === 0
      ? []
      : [
          warn(
            'config',
            `${config} contains ${old.join(' and ')}. OpenClaw 2026.8 and later do not start with this configuration.`,
            'Correct the configuration with: openclaw doctor --fix',
          ),
        ];
  const look = await openClaw.look(machine);
  if (look.at === 'absent') return { findings: [...findings, bad('config', 'OpenClaw is not connected.', CONNECT)] };
  if (look.at === 'broken') return { findings: [...findings, bad('config', look.why, CONNECT)] };
  const entry = look.at === 'present' ? look.entry : undefined;
  if (!entry)
    return { findings: [...findings, bad('config', 'The entry for Helmdeck Memory does not start a program.', CONNECT)] };
  return {
    findings: [...findings, ok('config', 'The configuration contains the tools and the plugin of Helmdeck Memory.')],
    entry,
  };
}

/** Returns the keys in the configuration that belong to the QMD search, which OpenClaw 2026.8 removed. */
const oldKeys = (text: string): string[] =>
  ['backend', 'qmd'].filter((key) => json5.valueAt(text, ['memory', key]) !== undefined).map((key) => `memory.${key}`);

async function toolsFinding({ machine, recorded }: EntryContext, entry: ClientEntry): Promise<Finding> {
  const { works, why = '', tools } = await verify(entry, machine, recorded);
  return works
    ? ok('tools', `The MCP server in OpenClaw's configuration starts, connects to the memory, and offers ${tools} tools.`)
    : bad('tools', why, CHECK_PROGRAM);
}

/** Checks the search that is registered with mcporter, by running the command that mcporter runs. */
async function qmdFindings(context: EntryContext, folder: string, entry: ClientEntry): Promise<Finding[]> {
  const { machine } = context;
  if (!wantsMcporter(machine))
    return [ok('qmd', 'The search is not registered with mcporter: HELMDECK_OPENCLAW_QMD or OPENCLAW_QMD_ENABLED turns it off.')];
  const { path, at } = lookAtMcporter(machine, entry);
  // HELMDECK_OPENCLAW_QMD can be set for the program but not in this shell, so check the record of the connection.
  if (at !== 'ours' && wasConnectedWithout(folder, path))
    return [ok('qmd', 'OpenClaw was connected without the search for mcporter, because a setting turned it off at that time.')];
  if (at !== 'ours') {
    const says =
      at === 'absent'
        ? `The search is not registered in ${path}.`
        : `${path} has a different server under the name of Helmdeck Memory.`;
    return [warn('qmd', says, `${CONNECT}, or turn this check off with HELMDECK_OPENCLAW_QMD=off.`)];
  }
  try {
    const { refused, message = '' } = await withBridge(mcporterEntry(entry), context, ({ call }) => call('query', { limit: 1 }));
    if (refused) return [bad('qmd', message, CHECK_PROGRAM)];
    return [ok('qmd', `The search is registered in ${path} and responds.`)];
  } catch (error) {
    return [bad('qmd', whyOf(error), CONNECT)];
  }
}

function wasConnectedWithout(folder: string, path: string): boolean {
  const record = new Records(folder).read(openClaw.id);
  return record !== undefined && !record.files.some((file) => file.path === path);
}

/** Stores a test fact as OpenClaw's agents do, searches for the fact through OpenClaw's gateway, and deletes the fact. */
async function searchFinding(context: EntryContext, entry: ClientEntry): Promise<Finding> {
  const word = `smoke${randomBytes(6).toString('hex')}`;
  const key = `helmdeck/doctor/${word}`;
  try {
    return await withBridge(entry, context, async ({ call }) => {
      const value = `A test fact for the memory search of OpenClaw: ${word}`;
      const stored = await call('memory_store', { key, value, ttl_seconds: TEST_FACT_SECONDS });
      if (stored.refused) return bad('search', stored.message ?? 'The test fact could not be stored.', CHECK_PROGRAM);
      try {
        return await searchOpenClaw(context.machine, word, key);
      } finally {
        await call('memory_forget', { scope: `key:${key}` });
      }
    });
  } catch (error) {
    return bad('search', whyOf(error), CHECK_PROGRAM);
  }
}

async function searchOpenClaw(machine: LocalMachine, word: string, key: string): Promise<Finding> {
  const params = JSON.stringify({ name: 'memory_search', args: { query: word } });
  const { code, stdout, stderr } = await runOpenClaw(machine, ['gateway', 'call', 'tools.invoke', '--json', '--params', params]);
  if (code !== 0) {
    const [output = ''] = stripVTControlCharacters(stderr || stdout)
      .trim()
      .split('\n');
    return bad(
      'search',
      `The gateway of OpenClaw does not respond: ${output.slice(0, 200)}`,
      'Start the gateway with: openclaw gateway run',
    );
  }
  if (stdout.includes(`helmdeck/user_facts/${key}`))
    return ok('search', 'The memory_search of OpenClaw finds a fact that was just stored.');
  return bad(
    'search',
    'The memory_search of OpenClaw does not find a fact that was just stored.',
    "Restart the gateway, so that it loads the plugin. If another plugin occupies OpenClaw's memory slot, agents can find facts only with the MCP tools.",
  );
}
