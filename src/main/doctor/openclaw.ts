import { randomBytes } from 'node:crypto';
import { stripVTControlCharacters } from 'node:util';
import { readConfigFile } from '../connect/config-file.ts';
import type { Entry, LocalMachine } from '../connect/connector.ts';
import { json5 } from '../connect/json-text.ts';
import { lookAtMcporter, mcporterEntry, wantsMcporter } from '../connect/openclaw/mcporter.ts';
import { openClaw } from '../connect/openclaw/openclaw.ts';
import { runOpenClaw, findOpenClaw } from '../connect/openclaw/program.ts';
import { Records } from '../connect/records.ts';
import { withBridge, type EntryContext, verify, whyOf } from '../connect/verify.ts';
import { bad, type Finding, ok, refusal, warn } from './finding.ts';

const AGAIN = 'helmdeck-memory connect openclaw';
/** It goes by itself, should it not come to be forgotten. */
const LEAST_SECONDS = 3600;

/** Whether OpenClaw finds what is remembered here, from its configuration to a fact that its own search has to find. */
export async function examineOpenClaw(machine: LocalMachine, folder: string): Promise<Finding[]> {
  const { program, version = 'of an unknown version', config, installed } = findOpenClaw(machine);
  if (!installed) return [bad('openclaw', 'It was not found on this machine.', 'Install it: https://openclaw.ai.')];
  if (program === undefined) {
    return [bad('openclaw', 'Its own program was not found in the PATH.', 'Put it there, or start this from where it is.')];
  }
  const found = ok('openclaw', `${version}, at ${program}.`);
  try {
    const { findings, entry } = await entryFindings(machine, config);
    if (!entry) return [found, ...findings];
    const context = { machine, recorded: new Records(folder).read(openClaw.id)?.entry };
    const qmd = await qmdFindings(context, folder, entry);
    return [found, ...findings, await toolsFinding(context, entry), ...qmd, await searchFinding(context, entry)];
  } catch (error) {
    return [found, refusal('config', error)];
  }
}

async function entryFindings(machine: LocalMachine, config: string): Promise<{ findings: Finding[]; entry?: Entry }> {
  const old = oldKeys(readConfigFile(config)?.text ?? '');
  const findings =
    old.length === 0
      ? []
      : [
          warn(
            'config',
            `${old.join(' and ')} stands in ${config}: since 2026.8 OpenClaw knows no such key, and does not start over it.`,
            'Let OpenClaw take it out: openclaw doctor --fix.',
          ),
        ];
  const look = await openClaw.look(machine);
  if (look.at === 'absent') return { findings: [...findings, bad('config', 'It is not connected.', `Connect it: ${AGAIN}.`)] };
  if (look.at === 'broken') return { findings: [...findings, bad('config', look.why, `With: ${AGAIN}.`)] };
  const entry = look.at === 'present' ? look.entry : undefined;
  if (!entry) return { findings: [...findings, bad('config', 'Our entry starts nothing.', `Connect it again: ${AGAIN}.`)] };
  return { findings: [...findings, ok('config', 'Tools and plugin stand in it, and the plugin is ours.')], entry };
}

/** Of the search by QMD that OpenClaw had up to 2026.7. */
const oldKeys = (text: string): string[] =>
  ['backend', 'qmd'].filter((key) => json5.valueAt(text, ['memory', key]) !== undefined).map((key) => `memory.${key}`);

async function toolsFinding({ machine, recorded }: EntryContext, entry: Entry): Promise<Finding> {
  const { works, why = '', tools } = await verify(entry, machine, recorded);
  return works
    ? ok('tools', `What its agents start comes through, and is offered ${tools} tools.`)
    : bad('tools', why, 'See what helmdeck-memory doctor says of the program.');
}

/** As mcporter would start it, and where mcporter would find it. */
async function qmdFindings(context: EntryContext, folder: string, entry: Entry): Promise<Finding[]> {
  const { machine } = context;
  if (!wantsMcporter(machine)) return [ok('qmd', 'HELMDECK_OPENCLAW_QMD or OPENCLAW_QMD_ENABLED keeps it out of mcporter.')];
  const { path, at } = lookAtMcporter(machine, entry);
  // The program may have been told by a variable that this shell does not have; what it then did is on record.
  if (at !== 'ours' && wasKeptOut(folder, path)) return [ok('qmd', 'OpenClaw was connected without it, as its owner had set.')];
  if (at !== 'ours') {
    const says = at === 'absent' ? `Our search does not stand in ${path}.` : `Under our name stands another server in ${path}.`;
    return [warn('qmd', says, `Connect it again: ${AGAIN}; or keep it out: set HELMDECK_OPENCLAW_QMD to off.`)];
  }
  try {
    const { refused, message = '' } = await withBridge(mcporterEntry(entry), context, ({ call }) => call('query', { limit: 1 }));
    if (refused) return [bad('qmd', message, 'See what helmdeck-memory doctor says of the program.')];
    return [ok('qmd', `It stands in ${path}, and answers.`)];
  } catch (error) {
    return [bad('qmd', whyOf(error), `Connect it again: ${AGAIN}.`)];
  }
}

function wasKeptOut(folder: string, path: string): boolean {
  const record = new Records(folder).read(openClaw.id);
  return record !== undefined && !record.files.some((file) => file.path === path);
}

/** Stores a fact as one of its agents, has the gateway search for it as for another, and forgets it. */
async function searchFinding(context: EntryContext, entry: Entry): Promise<Finding> {
  const word = `smoke${randomBytes(6).toString('hex')}`;
  const key = `helmdeck/doctor/${word}`;
  try {
    return await withBridge(entry, context, async ({ call }) => {
      const value = `Whether OpenClaw finds what is remembered: ${word}`;
      const stored = await call('memory_store', { key, value, ttl_seconds: LEAST_SECONDS });
      if (stored.refused) return bad('search', stored.message ?? 'A fact could not be stored.', 'Mend that first.');
      try {
        return await searched(context.machine, word, key);
      } finally {
        await call('memory_forget', { scope: `key:${key}` });
      }
    });
  } catch (error) {
    return bad('search', whyOf(error), 'See what helmdeck-memory doctor says of the program.');
  }
}

async function searched(machine: LocalMachine, word: string, key: string): Promise<Finding> {
  const params = JSON.stringify({ name: 'memory_search', args: { query: word } });
  const { code, stdout, stderr } = await runOpenClaw(machine, ['gateway', 'call', 'tools.invoke', '--json', '--params', params]);
  if (code !== 0) {
    const said =
      stripVTControlCharacters(stderr || stdout)
        .trim()
        .split('\n')[0] ?? '';
    return bad('search', `Its gateway does not answer: ${said.slice(0, 200)}`, 'Start it: openclaw gateway run.');
  }
  if (stdout.includes(`helmdeck/user_facts/${key}`))
    return ok('search', 'Its own memory_search finds a fact that was just stored.');
  return bad(
    'search',
    'Its own memory_search does not find a fact that was just stored.',
    'Start its gateway again, so that it loads the plugin; where another plugin has its memory slot, agents find facts by our tools only.',
  );
}
