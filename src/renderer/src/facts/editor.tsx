import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { FactDetail } from '../../../contract/fact.ts';
import { TAGS } from '../../../contract/limits.ts';
import { useMemory } from '../memory-context.tsx';
import { fullDate } from '../time.ts';
import { reasonFor } from '../ui/labels.ts';
import { ChangedFiling, ChangedText, filing } from './changed-text.tsx';
import { type Draft, draftOf, isChanged, tagsOf } from './drafts.tsx';
import { secondsLeftOf } from './lifetime.ts';

const LABELS = { value: 'Value', category: 'Category', tags: 'Tags' };

interface Props {
  readonly draft: Draft;
  /** The fact as it is now; undefined when it cannot be read. */
  readonly present: FactDetail | undefined;
  /** It is not there any more. */
  readonly gone: boolean;
  readonly keep: (draft: Draft | undefined) => void;
}

/** Changes what a fact says, its category and tags. What others write meanwhile is told, and takes nothing away. */
export function FactEditor({ draft, present, gone, keep }: Props) {
  const { ask } = useMemory();
  const [failure, setFailure] = useState<string>();
  const [saving, setSaving] = useState(false);
  const value = useRef<HTMLTextAreaElement>(null);
  const before = useRef<Element>(null);
  useEffect(() => {
    before.current = document.activeElement;
    value.current?.focus();
  }, []);
  /** The keys go on where they were; a button that is gone has left them in the fact. */
  const leave = (): void => {
    const { current: place } = before;
    const fact = value.current?.closest<HTMLElement>('aside');
    flushSync(() => keep(undefined));
    if (place instanceof HTMLElement && place.isConnected && place !== document.body) place.focus();
    else fact?.focus();
  };
  const { base } = draft;
  const save = async (): Promise<void> => {
    setSaving(true);
    try {
      const fact = present ?? base;
      const said = { key: fact.key, category: draft.category, tags: tagsOf(draft) };
      // Only a change of the value is a new fact; the time that was left stays.
      if (present && draft.value === present.value) await ask('patch', said);
      else await ask('remember', { ...said, value: draft.value, ttl_seconds: await secondsLeftOf(ask, fact) });
      leave();
    } catch (error) {
      setFailure(reasonFor(error, LABELS));
      setSaving(false);
    }
  };
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void save();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void save();
    // What was typed goes only when that is asked for by name.
    else if (event.key === 'Escape' && !isChanged(draft)) {
      event.preventDefault();
      leave();
    }
  };
  return (
    // Shortcuts of the form's own fields.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form className="editor" aria-label={`Edit ${base.key}`} onSubmit={onSubmit} onKeyDown={onKeyDown}>
      <Meanwhile draft={draft} present={present} gone={gone} keep={keep} />
      <label>
        Value
        <textarea ref={value} rows={8} value={draft.value} onChange={({ target }) => keep({ ...draft, value: target.value })} />
      </label>
      <label>
        Category
        <input autoComplete="off" value={draft.category} onChange={({ target }) => keep({ ...draft, category: target.value })} />
      </label>
      <label>
        Tags, one a line, at most {TAGS.max}
        <textarea rows={3} value={draft.tags} onChange={({ target }) => keep({ ...draft, tags: target.value })} />
      </label>
      {failure !== undefined && (
        <p className="failure" role="alert">
          {failure}
        </p>
      )}
      <p className="buttons">
        <button type="button" className="button" onClick={leave}>
          {isChanged(draft) ? 'Discard' : 'Cancel'}
        </button>
        <button className="button primary" disabled={saving || !isChanged(draft)}>
          Save
        </button>
      </p>
    </form>
  );
}

/** Says that the fact is not what it was when the editing began. */
function Meanwhile({ draft: { base, ...typed }, present, gone, keep }: Props) {
  // A new lifetime alone is no other text.
  const same = present ? present.value === base.value && filing(present) === filing(base) : !gone;
  if (same) return <div role="status" />;
  return (
    <div role="status" className="meanwhile">
      {present ? (
        <>
          <p>
            <bdi>{present.client}</bdi> changed this fact meanwhile, {fullDate(present.updated_at)}. What you typed is still here;
            saving it puts it in place of that.
          </p>
          <ChangedText before={base.value} after={present.value} />
          <ChangedFiling before={base} after={present} />
          <p className="buttons">
            <button type="button" className="button" onClick={() => keep({ ...typed, base: present })}>
              Keep mine
            </button>
            <button type="button" className="button" onClick={() => keep(draftOf(present))}>
              Take theirs
            </button>
          </p>
        </>
      ) : (
        <p>This fact is gone meanwhile. What you typed is still here; saving remembers it again.</p>
      )}
    </div>
  );
}
