import type { FactVersion } from '../../../contract/fact.ts';
import { diffWords } from './diff.ts';

/** What became of a text, word by word; told by more than colour. */
export function ChangedText({ before, after }: { before: string; after: string }) {
  return (
    <div className="value changed">
      {diffWords(before, after).map(({ what, text }, index) => {
        // Pieces have no name but their place.
        const key = `${index}`;
        if (what === 'same') return <span key={key}>{text}</span>;
        return what === 'added' ? <ins key={key}>{text}</ins> : <del key={key}>{text}</del>;
      })}
    </div>
  );
}

type Filed = Pick<FactVersion, 'category' | 'tags'>;

/** What became of category and tags; nothing where they are the same. */
export function ChangedFiling({ before, after }: { before: Filed; after: Filed }) {
  const [old, present] = [filing(before), filing(after)];
  return old === present ? undefined : <ChangedText before={old} after={present} />;
}

export const filing = ({ category, tags }: Filed): string => [category, ...tags].join(' · ');
