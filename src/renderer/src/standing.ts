import type { Status } from '../../contract/views.ts';

type Key = Status['store']['key'];

/** How the key stands, in words for its owner. */
export function standingOf(key: Key): { readonly title: string; readonly says: string } {
  switch (key.at) {
    case 'ok':
      return { title: 'Sealed', says: `The key that opens this memory is in ${key.source}.` };
    case 'ephemeral':
      return { title: 'Nothing is kept', says: key.remedy };
    case 'locked':
      return { title: 'This memory is locked', says: `${sentence(key.why)} ${key.remedy}` };
    case 'absent':
      return { title: 'The key of this memory is not there', says: key.remedy };
    case 'mismatch':
      return { title: 'This memory was sealed with another key', says: `${sentence(key.why)} ${key.remedy}` };
    case 'unavailable':
      return { title: 'The place of the key does not answer', says: `${sentence(key.why)} ${key.remedy}` };
  }
}

export const sentence = (text: string): string => {
  const begun = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
};
