import { describe, expect, test } from 'vitest';
import { FactInput } from '../../../src/contract/fact.ts';
import { captureFrom } from '../../../src/core/capture/rules.ts';
import { findSecret } from '../../../src/core/operations/secret-guard.ts';
import { measureBestCpu } from '../../support/work.ts';
import { poisoning } from '../inbox/sets/poisoning.ts';
import { credentials } from '../operations/secrets/credentials.ts';
import { ordinaryFacts } from '../operations/secrets/ordinary-facts.ts';
import { captureSets, measureCapture } from './measure.ts';
import { others, secrets } from './sets/others.ts';
import { statements } from './sets/statements.ts';
import { tasks } from './sets/tasks.ts';

test('is tested with 120 prompts with a lasting statement, and 120 without (R-CAPT-01)', () => {
  expect([statements.length, others.length]).toEqual([120, 120]);
});

test.each(captureSets)('statements are proposed, and little else: $name (R-CAPT-01)', (set) => {
  const { proposed, wrong } = measureCapture(set);
  expect(proposed).toBeGreaterThanOrEqual(0.8);
  expect(wrong).toBeLessThanOrEqual(0.1);
});

test('ordinary tasks that describe what to do lead to few proposals (R-CAPT-01)', () => {
  expect(tasks).toHaveLength(50);
  expect(tasks.filter((prompt) => captureFrom(prompt).length > 0).length / tasks.length).toBeLessThanOrEqual(0.1);
});

describe('nothing is proposed from', () => {
  test.each(others.filter(({ kind }) => kind === 'output' || kind === 'code' || kind === 'quotation' || kind === 'mail'))(
    'what others and programs wrote ($kind): $prompt (R-CAPT-02)',
    ({ prompt }) => {
      expect(captureFrom(prompt)).toEqual([]);
    },
  );

  test.each([
    ['the context of our own hook', '<hook_context>\nAlways use bun.\n</hook_context>\n\nRun the tests.'],
    ['a hook context that is not closed', 'Run the tests.\n<hook_context>Always use bun.'],
    ['a reminder of the system', '<system-reminder>Always use bun.</system-reminder> Continue.'],
    ['an expanded command', '<command-name>/lint</command-name>\n<command-args>Always use bun</command-args>'],
    ['a code block that is not closed', 'Look:\n```\nAlways use bun.'],
    ['a code block of tildes', '~~~md\nAlways use bun.\n~~~\nGood?'],
    ['text after an introduction', 'This is what the model said:\nAlways use bun.\nWe decided to use bun.'],
    ['a list of a task', 'Implement this\n- always use bun\n- never use npm'],
    ['a question of two sentences', 'Always use bun? I am not sure.'],
  ])('%s (R-CAPT-02)', (_what, prompt) => {
    expect(captureFrom(prompt)).toEqual([]);
  });

  test('a document with many rules, which was probably pasted (R-CAPT-02)', () => {
    const rules = ['tabs', 'semicolons', 'classes', 'enums', 'globals'].map((word) => `Never use ${word} in this project.`);
    expect(captureFrom(rules.slice(0, 3).join(' '))).toHaveLength(3);
    expect(captureFrom(rules.join(' '))).toEqual([]);
  });

  test('a prompt with suspicious text, which was probably pasted (R-CAPT-03)', () => {
    for (const { text } of poisoning) expect(captureFrom(`We always use pnpm here. ${text}`), text).toEqual([]);
    expect(captureFrom('We always use pnpm here. Thank you.')).toHaveLength(1);
  });

  test('a prompt with a secret in it (R-CAPT-03)', () => {
    for (const prompt of secrets) expect(captureFrom(prompt), prompt).toEqual([]);
    const prompts = credentials(5).map(({ text }) => `We always use pnpm here. Remember that the key is ${text}`);
    for (const prompt of prompts.filter((each) => findSecret(each))) expect(captureFrom(prompt), prompt).toEqual([]);
  });
});

describe('a proposal', () => {
  const one = (prompt: string, project?: string) => captureFrom(prompt, project)[0];

  test('has a key that names its topic, one sentence, and a category (R-CAPT-04)', () => {
    expect(one('ok, and please always use pnpm, never npm. Now add zod.')).toEqual({
      key: 'conventions/package-manager',
      value: 'Always use pnpm, never npm.',
      category: 'conventions',
      tags: [],
    });
    expect(one('btw my name is Lena Brandt, sign the mail with it')).toMatchObject({
      key: 'person/name',
      value: 'My name is Lena Brandt.',
      category: 'user_facts',
    });
    expect(one('I prefer vitest over jest. Write tests.')).toMatchObject({
      key: 'preferences/test-framework',
      category: 'preferences',
    });
    expect(one('We decided to use `NATS` for events.')).toMatchObject({
      key: 'decisions/nats-events',
      value: 'We decided to use `NATS` for events.',
      category: 'decisions',
    });
    expect(one('Merk dir: Unser Größenmaß ist Zoll.')).toMatchObject({ key: 'project_context/grossenmass-zoll' });
  });

  test('belongs to the project if it is no fact about the person (R-CAPT-04)', () => {
    expect(one('We decided to use NATS for events.', 'Konflux Web')).toMatchObject({
      key: 'decisions/konflux-web/nats-events',
      tags: ['project:Konflux Web'],
    });
    expect(one('I prefer vitest over jest.', 'Konflux Web')).toMatchObject({ key: 'preferences/test-framework', tags: [] });
  });

  test('is a valid fact, whatever the prompt (R-CAPT-04)', () => {
    const prompts = [...statements.map(({ prompt }) => prompt), ...ordinaryFacts.map((fact) => `Remember that ${fact}`)];
    const found = prompts.flatMap((prompt) => captureFrom(prompt, 'Straße 7'));
    expect(found.length).toBeGreaterThan(200);
    for (const fact of found) {
      expect(FactInput().parse(fact)).toMatchObject(fact);
      expect(fact.value.length).toBeLessThanOrEqual(301);
      expect(fact.value).not.toMatch(/[\ue000-\uf8ff\n]/);
    }
  });
});

test.each([
  ['words', 'we always use the one thing and never the other one because '],
  ['lines', 'always\n'],
  ['one line', 'a'],
  ['quotation marks', `"'\`„“”«»`],
  ['tags', '<a><b c="d">'],
  ['fences', '```\n'],
  ['capitals', 'Our Big Thing Is Not '],
])('reading a long prompt takes little time: %s (R-CAPT-05)', (_what, piece) => {
  const prompt = piece.repeat(20_000);
  expect(measureBestCpu(() => captureFrom(prompt), 150)).toBeLessThan(500);
});
