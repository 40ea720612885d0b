import type { Status } from '../../contract/views.ts';

type Key = Status['store']['key'];

export function describeKey(key: Key): { readonly title: string; readonly text: string } {
  switch (key.at) {
    case 'ok':
      return { title: 'Sealed', text: `The key for this memory is in ${key.source}.` };
    case 'ephemeral':
      return { title: 'This memory is not saved', text: key.remedy };
    case 'locked':
      return { title: 'This memory is locked', text: `${sentence(key.why)} ${key.remedy}` };
    case 'absent':
      return { title: 'The key for this memory is missing', text: key.remedy };
    case 'mismatch':
      return { title: 'This memory was sealed with another key', text: `${sentence(key.why)} ${key.remedy}` };
    case 'unavailable':
      return { title: 'The key store does not respond', text: `${sentence(key.why)} ${key.remedy}` };
  }
}

/** Makes a text a sentence: capitalizes the first letter, and adds a full stop if the text has no end mark. */
export const sentence = (text: string): string => {
  const capitalized = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  return /[.!?]$/.test(capitalized) ? capitalized : `${capitalized}.`;
};
