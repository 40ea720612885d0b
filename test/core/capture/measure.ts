import { captureFrom } from '../../../src/core/capture/rules.ts';
import { others } from './sets/others.ts';
import { rounds } from './sets/rounds.ts';
import { type Statement, statements } from './sets/statements.ts';
import { untouchedOthers, untouchedStatements } from './sets/untouched.ts';

interface CaptureSet {
  readonly name: string;
  readonly statements: readonly Statement[];
  readonly others: readonly string[];
}

const half = <Item>(items: readonly Item[], first: 0 | 1): Item[] => items.filter((_, place) => place % 2 === first);
const prompts = others.map(({ prompt }) => prompt);

/** The rules were made with the first half and the rounds in view. */
export const captureSets: readonly CaptureSet[] = [
  { name: 'the half that was in view', statements: half(statements, 0), others: half(prompts, 0) },
  { name: 'the half that was held back', statements: half(statements, 1), others: half(prompts, 1) },
  ...rounds.map((round, place) => ({ name: `round ${place + 1}`, ...round })),
  { name: 'prompts that were written after the rules', statements: untouchedStatements, others: untouchedOthers },
];

/** Returns the share of statements that are proposed, and the share of proposals that are no statement. */
export function measureCapture(set: CaptureSet): { readonly proposed: number; readonly wrong: number } {
  let [right, all] = [0, 0];
  for (const { prompt, says } of set.statements) {
    const found = captureFrom(prompt);
    all += found.length;
    const isRight = found.some(({ value }) => says.every((word) => value.toLowerCase().includes(word.toLowerCase())));
    right += isRight ? 1 : 0;
  }
  for (const prompt of set.others) all += captureFrom(prompt).length;
  return { proposed: right / set.statements.length, wrong: (all - right) / all };
}
