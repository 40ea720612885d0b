import { Failure } from '../../contract/failure.ts';
import { editDistance } from '../../core/search/edit-distance.ts';

/** Typing mistakes up to which a name still suggests a tool. */
const MISTAKES = 2;
const LONGEST = 128;

/**
 * A tool failure and not a protocol error (ADR 0068): most clients show a model only the results of its calls, and a model that
 * reads which tools there are corrects itself.
 */
export function unknownToolFailure(asked: string, tools: readonly string[]): Failure {
  const near = similarTool(asked, tools);
  const hint = near === undefined ? '' : ` Did you mean ${near}?`;
  return new Failure('not_found', `There is no such tool.${hint} The tools are ${tools.join(', ')}.`);
}

/** Tools differ in letters and in words: `memory.recall`, `memoryRecall`, `recall` and `memory_recal` all mean memory_recall. */
function similarTool(asked: string, tools: readonly string[]): string | undefined {
  const typed = normalized(asked.slice(0, LONGEST));
  if (typed === '') return undefined;
  const known = tools.map((name) => ({ name, spelled: normalized(name) }));
  return (
    known.find(({ spelled }) => spelled === typed || typed.endsWith(`_${spelled}`) || spelled.endsWith(`_${typed}`)) ??
    known.find(({ spelled }) => editDistance(spelled, typed, MISTAKES) <= MISTAKES)
  )?.name;
}

const normalized = (name: string): string =>
  name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '');
