/** Oldest version of Ollama that has no known vulnerabilities when it reads or downloads models. */
export const MINIMUM_VERSION = '0.35.0';

const PARTS = /^(\d+)\.(\d+)\.(\d+)(.*)$/;
/** Version suffixes of builds that were made after a release, such as those of `git describe`. */
const AFTER_RELEASE = /^(?:$|\+|-\d+-g)/;

/**
 * True if `version` is older than `least`. A release candidate is older than its release, because it may lack the release's
 * fixes.
 */
export function isOlder(version: string, least: string): boolean {
  const [one, other] = [partsOf(version), partsOf(least)];
  const at = one.numbers.findIndex((part, index) => part !== other.numbers[index]);
  return at === -1 ? !AFTER_RELEASE.test(one.rest) : (one.numbers[at] ?? 0) < (other.numbers[at] ?? 0);
}

function partsOf(version: string): { numbers: number[]; rest: string } {
  const [, major, minor, patch, rest = ''] = PARTS.exec(version) ?? [];
  return { numbers: [major, minor, patch].map(Number), rest };
}
