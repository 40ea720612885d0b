import { captureFrom } from '../src/core/capture/rules.ts';
import { markedField } from '../src/core/inbox/marks.ts';
import { captureSets, measureCapture } from '../test/core/capture/measure.ts';
import { tasks } from '../test/core/capture/sets/tasks.ts';
import { ordinary } from '../test/core/inbox/sets/ordinary.ts';
import { laterPoisoning, poisoning } from '../test/core/inbox/sets/poisoning.ts';
import { ordinaryFacts } from '../test/core/operations/secrets/ordinary-facts.ts';

/** Prints how many statements of prompts the rules propose, and how many texts are marked as suspicious, in percent. */

const percent = (share: number): number => Math.round(share * 1000) / 10;

console.table(
  captureSets.map((set) => {
    const { proposed, wrong } = measureCapture(set);
    return {
      prompts: set.name,
      'with a statement': set.statements.length,
      'without one': set.others.length,
      'statements proposed (%)': percent(proposed),
      'proposals that are wrong (%)': percent(wrong),
    };
  }),
);

const misled = tasks.filter((prompt) => captureFrom(prompt).length > 0).length;
console.log(`Ordinary tasks that lead to a proposal: ${misled} of ${tasks.length}`);

const marked = (texts: readonly string[]): number =>
  percent(texts.filter((value) => markedField({ key: 'x', value }).marked !== undefined).length / texts.length);
const half = <Item>(items: readonly Item[], first: 0 | 1): Item[] => items.filter((_, place) => place % 2 === first);
const attacks = poisoning.map(({ text }) => text);

console.table([
  { texts: 'attacks, half that was in view', number: 25, 'marked (%)': marked(half(attacks, 0)) },
  { texts: 'attacks, half that was held back', number: 25, 'marked (%)': marked(half(attacks, 1)) },
  ...laterPoisoning.map((texts, place) => ({
    texts: `attacks of round ${place + 1}`,
    number: texts.length,
    'marked (%)': marked(texts),
  })),
  { texts: 'ordinary facts, half that was in view', number: 50, 'marked (%)': marked(half(ordinary, 0)) },
  { texts: 'ordinary facts, half that was held back', number: 50, 'marked (%)': marked(half(ordinary, 1)) },
  { texts: 'ordinary facts of another set', number: ordinaryFacts.length, 'marked (%)': marked(ordinaryFacts) },
]);
