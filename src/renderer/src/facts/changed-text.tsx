import type { FactVersion } from '../../../contract/fact.ts';
import { diffWords } from './diff.ts';

/** Shows the difference of two texts word by word. Uses `<ins>` and `<del>`, because colour alone would not be accessible. */
export function ChangedText({ before, after }: { before: string; after: string }) {
  return (
    <div className="value changed">
      {diffWords(before, after).map(({ change, text }, index) => {
        // Pieces have no ids, so the index is the React key.
        const key = `${index}`;
        if (change === 'same') return <span key={key}>{text}</span>;
        return change === 'added' ? <ins key={key}>{text}</ins> : <del key={key}>{text}</del>;
      })}
    </div>
  );
}

type CategoryAndTags = Pick<FactVersion, 'category' | 'tags'>;

/** Shows how the category and tags of a fact changed. Renders nothing if both are unchanged. */
export function ChangedCategoryAndTags({ before, after }: { before: CategoryAndTags; after: CategoryAndTags }) {
  if (categoryAndTagsText(before) === categoryAndTagsText(after)) return undefined;
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

export const categoryAndTagsText = ({ category, tags }: CategoryAndTags): string => [category, ...tags].join(' · ');
