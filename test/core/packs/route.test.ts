import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import type { Caller } from '../../../src/core/access/caller.ts';
import type { Pack } from '../../../src/core/packs/pack.ts';
import { MEMORY_TOOLS } from '../../../src/listeners/mcp/tools.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';

const me = aCaller();

const pack = (over: Partial<Pack>): Pack =>
  aPack(() => ({ said: '' }), { input: z.looseObject({ format: z.string().optional() }), ...over });

const packs = [
  pack({
    name: 'github.list_issues',
    title: 'List GitHub issues',
    description: 'Lists the issues of one GitHub repository with title, state, labels, author and times, newest first.',
    intents: ['list github issues', 'open bugs of a repository', 'what is reported', 'issue tracker'],
    changes: 'nothing',
  }),
  pack({
    name: 'github.get_issue',
    title: 'Get a GitHub issue',
    description: 'Reads one issue, or pull request, of a GitHub repository by its number, with its text in markdown.',
    intents: ['read a github issue', 'details of a bug report', 'show issue by number'],
    changes: 'nothing',
  }),
  pack({
    name: 'http.fetch',
    title: 'Fetch a page',
    description: 'Reads a page or an API answer by https GET, from hosts that the owner of this memory listed.',
    intents: ['fetch a page', 'read a url', 'download documentation', 'call an http api'],
    changes: 'nothing',
  }),
  pack({
    name: 'weather.today',
    title: 'Weather',
    description: 'Weather and forecast for a city.',
    intents: ['weather in a city', 'will it rain'],
    changes: 'nothing',
  }),
  pack({
    name: 'texts.translate',
    title: 'Translate a text',
    description: 'Puts a text into another language.',
    intents: ['translate a text', 'say it in another language'],
  }),
  pack({
    name: 'mail.send',
    title: 'Send a message',
    description: 'Sends a short message by mail.',
    intents: ['send a mail', 'write somebody a message', 'notify somebody'],
    unavailable: () => 'Its owner has to sign in first.',
  }),
];

const step = { id: 'one', pack: 'test.echo' };
const pipelines = [
  {
    id: 'weekly-report',
    title: 'Weekly report',
    description: 'Collects what was done in a week and writes a summary for the team.',
  },
  { id: 'rechnungen', title: 'Rechnungen prüfen', description: 'Holt offene Rechnungen und gleicht sie mit dem Konto ab.' },
  { id: 'releve', title: 'Relevé de dépenses', description: 'Rassemble les dépenses du mois.' },
  { id: 'shuho', title: '週報を作成', description: '一週間の作業をまとめる。' },
  { id: 'viaje', title: 'Planear un viaje', description: 'Busca trenes y hoteles para un viaje.' },
];

interface Answer {
  recommendation?: { kind: string; id: string; suggested_inputs?: Record<string, string>; why: string };
  alternatives: { kind: string; id: string; why: string }[];
  gap_warning?: string;
  reasoning: string;
}

const filled = async (): Promise<TestMemory> => {
  const memory = await openTestMemory({ packs: { packs: [...packs, aPack(() => ({ said: '' }))] } });
  for (const pipeline of pipelines) await memory.as(me)('createPipeline', { ...pipeline, steps: [step] });
  return memory;
};

const route = async (memory: TestMemory, intent: string, context?: string, caller: Caller = me): Promise<Answer> => {
  const input = { user_intent: intent, ...(context !== undefined && { context }) };
  const { output } = await memory.as(caller)('runPack', { name: 'helmdeck.route', input });
  return output as Answer;
};

test('the reason for a pipeline ends with one full stop', async () => {
  const { recommendation } = await route(await filled(), 'collect what was done in a week and write a summary for the team');
  expect(recommendation).toMatchObject({ kind: 'pipeline', id: 'weekly-report' });
  expect(recommendation?.why).toMatch(/[^.]\.$/);
});

test('never explains a match with an empty phrase (R-PACK-11)', async () => {
  const memory = await openTestMemory({ packs: { packs: [aPack(() => ({ said: '' }))] } });
  await memory.as(me)('createPipeline', { id: 'quokka-census', steps: [step] });
  await memory.as(me)('createPipeline', { id: 'numbat', title: '...', description: 'Counts quokka and census.', steps: [step] });
  const { recommendation, alternatives } = await route(memory, 'quokka census');
  const reasons = [recommendation, ...alternatives].flatMap((each) => each?.why ?? []);
  expect(reasons).toHaveLength(2);
  for (const why of reasons) expect(why).toMatch(/\w{3}"?\.$/);
});

describe('what is recommended', () => {
  const served: Record<string, string[]> = {
    'github.list_issues': [
      'list the open issues in acme/web',
      'Show me all GitHub issues labelled bug',
      'Which bugs are open in our repository?',
      'Can you get the github issues for helmdeck/core?',
      'what is in the issue tracker',
      'what issues does acme/web have?',
      'are there any open bugs in acme/web?',
      'get all issues from GitHub',
      'Zeige mir die GitHub-Issues von acme/web',
      'montre les issues GitHub de acme/web',
    ],
    'github.get_issue': [
      'show issue number 42',
      'read the github issue acme/web#12',
      'I need the details of that bug report',
      'look at github issue 17',
    ],
    'http.fetch': [
      'fetch https://docs.example.com/start',
      'read this url: https://example.com',
      'download the documentation page',
      'get me the page at https://example.com',
      'what does https://example.com say?',
      'please call the http api at https://api.example.com/v1',
    ],
    'weather.today': [
      "what's the weather in Berlin",
      'Will it rain in Oslo?',
      'weather forecast for the city of Rome',
      'how is the weather tomorrow?',
    ],
    'texts.translate': ['translate this text into French', 'Please translate a text', 'say this in another language'],
    'helmdeck.memory_store': [
      'remember that I prefer tabs over spaces',
      'Remember: deploys go through Konflux only',
      'please save my preference for dark mode',
      "don't forget that the meeting moved to Tuesday",
      'Can you remember my decision to use Postgres?',
      'keep in mind that I am vegetarian',
      'make a note: the staging server is called otter',
      'I want you to remember my birthday',
      'store my preference for British spelling',
      'Merke dir, dass ich Helix benutze',
      'bitte merk dir meinen Editor',
      'recuerda que prefiero el modo oscuro',
      'retiens que je préfère Vue',
      'vergiss nicht, dass wir freitags nicht deployen',
    ],
    'helmdeck.memory_forget': [
      'forget what I said about React',
      'delete that fact from memory',
      'erase my old address from your memory',
      'please remove this fact from your memory',
      'you can forget about the old deploy target',
      'vergiss meine alte Adresse',
      'olvida mi dirección',
      'oublie mon ancienne adresse',
    ],
    memory_search: [
      'search my memory for the deploy target',
      'do you remember my favourite editor?',
      'What do you know about me?',
      'what did we decide about the database?',
      'look up my preference for tabs',
      'what did I tell you about tabs?',
      'which editor do I prefer?',
      'find my preferences',
      'erinnerst du dich an meinen Editor?',
    ],
    memory_renew: ['extend the lifetime of that fact', 'keep that fact longer'],
    memory_history: ['show the history of this fact', 'earlier versions of the fact about deploys'],
    'weekly-report': [
      'run the weekly report',
      'write the weekly summary for my team',
      'I need my weekly report',
      'start the weekly-report pipeline',
    ],
    rechnungen: ['Bitte die offenen Rechnungen prüfen', 'Rechnungen prüfen', 'offene Rechnungen mit dem Konto abgleichen'],
    releve: ['fais le relevé de dépenses'],
    shuho: ['週報を作成してください', '週報を作成'],
    viaje: ['quiero planear un viaje a Lisboa', 'un viaje a Oporto con trenes y hoteles'],
  };

  test('is the pack that matches the need, in any wording (R-PACK-11)', async () => {
    const memory = await filled();
    const wanted = Object.entries(served).flatMap(([id, intents]) => intents.map((intent) => [intent, id]));
    const got: string[][] = [];
    for (const [intent = ''] of wanted) {
      const { recommendation, gap_warning: gap, reasoning } = await route(memory, intent);
      got.push([intent, recommendation?.id ?? `${gap} ${reasoning}`]);
    }
    expect(got).toEqual(wanted);
  });

  const unserved = [
    'create a github issue about the login',
    'open a bug in acme/web',
    'close issue 12',
    'delete my github account',
    'issue a refund to the customer',
    'there are issues in my marriage',
    'star the github repository',
    'merge the pull request',
    'deploy the repository to production',
    'fetch my mail',
    'download more RAM',
    'get rid of the weeds in the garden',
    'list my groceries',
    'clear the browser cache',
    'save the whales',
    'write a poem about the sea',
    'book a table for two',
    'what is the capital of Peru?',
    'play some music',
    'turn off the lights',
    'how tall is Mount Everest?',
    'write a report',
    'store the files on S3',
    'build a page',
    'buche mir einen Flug',
    'réserve une table',
    '写一首诗',
    'create a repository on github',
    'assign issue 4 to Ada',
    'label all bugs as urgent',
    'write an issue',
    'comment on the github issue',
    'read me a story',
    'list my calendar events',
    'show me the money',
    'find a restaurant nearby',
    'get a haircut',
    'text my mother',
    'turn the page',
    'what is my name',
    'facts about whales',
    'city of gold',
    'delete all files',
    'remove the background of this picture',
    'save this document as PDF',
    'note the irony',
    'learn a language',
    'memory usage of the process',
    'computer memory is full',
    'the history of Rome',
    'decide what to eat',
    'Bericht schreiben',
    'prüfe mein Englisch',
    'run the tests',
    'review this pull request',
    'xyzzy',
    '???',
    'the of and',
  ];

  test('is absent with a warning if nothing matches (R-PACK-25)', async () => {
    const memory = await filled();
    const answers: Answer[] = [];
    for (const intent of unserved) answers.push(await route(memory, intent));
    const got = answers.map(({ recommendation, reasoning }) => recommendation && `${recommendation.id}: ${reasoning}`);
    expect(unserved.map((intent, index) => [intent, got[index]])).toEqual(unserved.map((intent) => [intent, undefined]));
    for (const { gap_warning: gap } of answers) expect(gap).toMatch(/^No pack, pipeline or tool/);
  });
});

test('the named tools exist', () => {
  const names = MEMORY_TOOLS.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['memory_search', 'memory_renew', 'memory_history']));
});

describe('a recommendation', () => {
  test('is the same for equal requests, names alternatives, and gives reasons (R-PACK-11)', async () => {
    const memory = await filled();
    const answer = await route(memory, 'list the github issues of acme/web');
    expect(answer).toEqual({
      recommendation: { kind: 'pack', id: 'github.list_issues', why: 'Use it for: list github issues.' },
      alternatives: [{ kind: 'pack', id: 'github.get_issue', why: expect.stringMatching(/^Use it for: /) }],
      reasoning: expect.stringMatching(/^Compared the task with \d+ descriptions\. Best match: github\.list_issues/),
    });
    expect(await route(memory, 'list the github issues of acme/web')).toEqual(answer);
  });

  test('runs nothing and leaves no row (R-PACK-06, R-PACK-11)', async () => {
    let ran = 0;
    const memory = await openTestMemory({
      packs: { packs: [aPack(() => ({ said: `${(ran += 1)}` }), { intents: ['echo a word'] })] },
    });
    const before = (await memory.store.space({ subject: 'me' }, 'audit').page({ sort: 'updated', limit: 10 })).entries;
    expect(await route(memory, 'echo a word')).toMatchObject({ recommendation: { id: 'test.echo' } });
    expect(ran).toBe(0);
    expect((await memory.store.space({ subject: 'me' }, 'audit').page({ sort: 'updated', limit: 10 })).entries).toEqual(before);
  });

  test('uses the context of the conversation, but never the context alone', async () => {
    const memory = await filled();
    expect(await route(memory, 'list them', 'We talk about the github issues of acme/web.')).toMatchObject({
      recommendation: { id: 'github.list_issues' },
    });
    expect(await route(memory, 'sing a song', 'We talked about the github issues of acme/web.')).not.toHaveProperty(
      'recommendation',
    );
  });

  test('does not recommend a pack that cannot run, but names it (R-PACK-25)', async () => {
    const memory = await filled();
    const answer = await route(memory, 'send a mail to Ada');
    expect(answer).not.toHaveProperty('recommendation');
    expect(answer.gap_warning).toBe('mail.send fits, but cannot run at present: Its owner has to sign in first.');
    expect(answer.alternatives[0]).toMatchObject({
      id: 'mail.send',
      why: expect.stringContaining('Its owner has to sign in first.'),
    });
  });

  test('reveals nothing about the runs of other clients (R-PACK-11)', async () => {
    const memory = await filled();
    const other = aCaller({ client: 'other', token: 'token-2' });
    const without = await route(memory, 'translate this text');
    for (const _turn of [1, 2]) await memory.as(other)('runPack', { name: 'texts.translate', input: { format: 'short' } });
    expect(await route(memory, 'translate this text')).toEqual(without);
    expect((await route(memory, 'translate this text', undefined, other)).recommendation).toMatchObject({
      suggested_inputs: { format: 'short' },
    });
  });

  test('suggests the caller’s usual inputs that the pack still accepts', async () => {
    const memory = await filled();
    const input = { format: 'short', persona: 'pirate' };
    for (const _turn of [1, 2]) await memory.as(me)('runPack', { name: 'texts.translate', input });
    const { recommendation } = await route(memory, 'translate this text');
    expect(recommendation).toEqual({
      kind: 'pack',
      id: 'texts.translate',
      suggested_inputs: { format: 'short' },
      why: 'Use it for: translate a text. It has succeeded 2 times for this caller.',
    });
  });

  test('lets habits decide only between candidates with similar scores', async () => {
    const twin = { title: 'Draw', description: '', intents: ['draw a picture'] };
    const memory = await openTestMemory({
      packs: { packs: [pack({ ...twin, name: 'draw.a' }), pack({ ...twin, name: 'draw.b' }), ...packs] },
    });
    expect(await route(memory, 'draw a picture')).toMatchObject({ recommendation: { id: 'draw.a' } });
    for (let turn = 0; turn < 40; turn += 1) await memory.as(me)('runPack', { name: 'draw.b', input: {} });
    expect(await route(memory, 'draw a picture')).toMatchObject({ recommendation: { id: 'draw.b' } });
    expect(await route(memory, 'what is the weather in Rome')).toMatchObject({ recommendation: { id: 'weather.today' } });
  });

  test('considers habits and pipelines only for tokens with memory:read', async () => {
    const memory = await filled();
    await memory.as(me)('runPack', { name: 'texts.translate', input: { format: 'short' } });
    const runner = aCaller({ may: ['packs:run'] });
    const answer = await route(memory, 'translate this text', undefined, runner);
    expect(answer.recommendation).toEqual({ kind: 'pack', id: 'texts.translate', why: 'Use it for: translate a text.' });
    expect(answer.reasoning).toContain('memory:read');
    expect(await route(memory, 'run the weekly report', undefined, runner)).not.toHaveProperty('recommendation');
    expect(await route(memory, 'run the weekly report', undefined, aCaller({ subject: 'you' }))).not.toHaveProperty(
      'recommendation',
    );
  });

  test('considers only the catalogue while the memory is locked', async () => {
    const memory = await filled();
    memory.store.lock();
    const answer = await route(memory, 'list the github issues of acme/web');
    expect(answer).toMatchObject({
      recommendation: { id: 'github.list_issues' },
      reasoning: expect.stringContaining('at present'),
    });
  });

  test.each([{}, { user_intent: '' }, { user_intent: ' ' }, { user_intent: 'x'.repeat(1001) }, { user_intent: 'x', more: 1 }])(
    'is not made for %j',
    async (input) => {
      const memory = await openTestMemory();
      const asked = memory.as(me)('runPack', { name: 'helmdeck.route', input });
      await expect(asked).rejects.toMatchObject({ code: 'invalid_input' });
    },
  );

  test('takes little time among many long descriptions', async () => {
    const memory = await openTestMemory({ packs: { packs: [aPack(() => ({ said: '' }))] } });
    const description = 'Words and more words, about nothing. '.repeat(50);
    for (let index = 0; index < 100; index += 1) {
      await memory.as(theOwner)('createPipeline', { id: `p${index}`, title: `Pipeline ${index}`, description, steps: [step] });
    }
    const from = process.threadCpuUsage();
    expect(await route(memory, 'x y z '.repeat(160))).toHaveProperty('gap_warning');
    const { user, system } = process.threadCpuUsage(from);
    expect((user + system) / 1000).toBeLessThan(500);
  });
});
