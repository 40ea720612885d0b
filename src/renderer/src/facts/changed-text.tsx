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

/** What became of category and tags, name by name; nothing where they are the same. */
export function ChangedFiling({ before, after }: { before: Filed; after: Filed }) {
  if (filing(before) === filing(after)) return undefined;
  const left = before.tags.filter((tag) => !after.tags.includes(tag));
  return (
    <p className="changed">
      {before.category !== after.category && (
        <>
          <del>{before.category}</del>{' '}
        </>
      )}
      {before.category === after.category ? after.category : <ins>{after.category}</ins>}
      {after.tags.map((tag) => (
        <span key={tag}> · {before.tags.includes(tag) ? tag : <ins>{tag}</ins>}</span>
      ))}
      {left.map((tag) => (
        <span key={tag}>
          {' '}
          · <del>{tag}</del>
        </span>
      ))}
    </p>
  );
}

export const filing = ({ category, tags }: Filed): string => [category, ...tags].join(' · ');
