import type { FactVersion } from '../../../contract/fact.ts';
import { diffWords } from './diff.ts';

/** The word-by-word difference of two texts. `<ins>` and `<del>` mark changes by more than colour. */
export function ChangedText({ before, after }: { before: string; after: string }) {
  return (
    <div className="value changed">
      {diffWords(before, after).map(({ change, text }, index) => {
        // A piece has no identity other than its position.
        const key = `${index}`;
        if (change === 'same') return <span key={key}>{text}</span>;
        return change === 'added' ? <ins key={key}>{text}</ins> : <del key={key}>{text}</del>;
      })}
    </div>
  );
}

type Filing = Pick<FactVersion, 'category' | 'tags'>;

/** The changes of the category and tags; nothing if there are none. */
export function ChangedFiling({ before, after }: { before: Filing; after: Filing }) {
  if (filingText(before) === filingText(after)) return undefined;
  const removed = before.tags.filter((tag) => !after.tags.includes(tag));
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
      {removed.map((tag) => (
        <span key={tag}>
          {' '}
          · <del>{tag}</del>
        </span>
      ))}
    </p>
  );
}

export const filingText = ({ category, tags }: Filing): string => [category, ...tags].join(' · ');
