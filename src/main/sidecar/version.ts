/** The oldest Ollama without a hole that is known in what we use: reading and fetching models. */
export const LEAST_VERSION = '0.35.0';

export function isOlder(version: string, least: string): boolean {
  const numbers = (text: string): number[] => text.split(/[.-]/, 3).map(Number);
  const [one, other] = [numbers(version), numbers(least)];
  const at = one.findIndex((part, index) => part !== other[index]);
  return at !== -1 && (one[at] ?? 0) < (other[at] ?? 0);
}
