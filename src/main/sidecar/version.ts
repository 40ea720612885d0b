/** The oldest Ollama without a hole that is known in what we use: reading and fetching models. */
export const MINIMUM_VERSION = '0.35.0';

const PARTS = /^(\d+)\.(\d+)\.(\d+)(.*)$/;
/** What was built from a release and some changes more, as git tells it, or in another way. */
const LATER = /^(?:$|\+|-\d+-g)/;

/** A candidate for a release came before it, and may lack what it mends. */
export function isOlder(version: string, least: string): boolean {
  const [one, other] = [partsOf(version), partsOf(least)];
  const at = one.numbers.findIndex((part, index) => part !== other.numbers[index]);
  return at === -1 ? !LATER.test(one.rest) : (one.numbers[at] ?? 0) < (other.numbers[at] ?? 0);
}

function partsOf(version: string): { numbers: number[]; rest: string } {
  const [, major, minor, patch, rest = ''] = PARTS.exec(version) ?? [];
  return { numbers: [major, minor, patch].map(Number), rest };
}
