import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { FactDetail } from '../../../contract/fact.ts';
import { TAGS } from '../../../contract/limits.ts';
import { useMemory } from '../memory-context.tsx';
import { fullDate } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { errorText } from '../ui/labels.ts';
import { ChangedCategoryAndTags, ChangedText, categoryAndTagsText } from './changed-text.tsx';
import { type Draft, draftOf, isChanged, tagsOf } from './drafts.tsx';
import { currentSecondsLeft } from './lifetime.ts';

const LABELS = { value: 'Value', category: 'Category', tags: 'Tags' };

interface Props {
  readonly draft: Draft;
  /** The fact as it is stored now, perhaps changed by another client. Undefined if the fact cannot be read. */
  readonly present: FactDetail | undefined;
  readonly deleted: boolean;
  readonly setDraft: (draft: Draft | undefined) => void;
}

/**
 * A form that edits the value, category and tags of a fact. If another client changes the fact, the form shows that change and
 * keeps the draft (R-WIN-11).
 */
export function FactEditor({ draft, present, deleted, setDraft }: Props) {
  const { call } = useMemory();
  const [failure, setFailure] = useState<string>();
  const [saving, setSaving] = useState(false);
  const value = useRef<HTMLTextAreaElement>(null);
  const leave = useFocusReturn(value, () => setDraft(undefined));
  const { base } = draft;
  const save = async (): Promise<void> => {
    setSaving(true);
    try {
      const fact = present ?? base;
      const input = { key: fact.key, category: draft.category, tags: tagsOf(draft) };
      // `patch` keeps the value and the expiry. `remember` starts a new lifetime, so pass the remaining seconds (R-STAY-03).
      if (present && draft.value === present.value) await call('patch', input);
      else await call('remember', { ...input, value: draft.value, ttl_seconds: await currentSecondsLeft(call, fact) });
      leave();
    } catch (error) {
      setFailure(errorText(error, LABELS));
      setSaving(false);
    }
  };
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void save();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void save();
    // Escape closes only an unchanged draft, so that Escape never discards changes.
    else if (event.key === 'Escape' && !isChanged(draft)) {
      event.preventDefault();
      leave();
    }
  };
  return (
    // The form handles the keyboard shortcuts of its fields.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form className="editor" aria-label={`Edit ${base.key}`} onSubmit={onSubmit} onKeyDown={onKeyDown}>
      <Conflict draft={draft} present={present} deleted={deleted} setDraft={setDraft} />
      <label>
        Value
        <textarea
          ref={value}
          rows={8}
          value={draft.value}
          onChange={({ target }) => setDraft({ ...draft, value: target.value })}
        />
      </label>
      <label>
        Category
        <input
          autoComplete="off"
          value={draft.category}
          onChange={({ target }) => setDraft({ ...draft, category: target.value })}
        />
      </label>
      <label>
        Tags, one per line, up to {TAGS.max}
        <textarea rows={3} value={draft.tags} onChange={({ target }) => setDraft({ ...draft, tags: target.value })} />
      </label>
      <ErrorText text={failure} />
      <p className="buttons">
        <Button label={isChanged(draft) ? 'Discard' : 'Cancel'} onClick={leave} />
        <Button label="Save" type="submit" look="primary" disabled={saving || !isChanged(draft)} />
      </p>
    </form>
  );
}

/**
 * Focuses the field. The returned function closes the editor and restores the previous focus. If the element that had the focus
 * no longer exists, the fact gets the focus.
 */
function useFocusReturn(field: { readonly current: HTMLElement | null }, close: () => void): () => void {
  const before = useRef<Element>(null);
  useEffect(() => {
    before.current = document.activeElement;
    field.current?.focus();
  }, [field]);
  return () => {
    const { current: previous } = before;
    const fact = field.current?.closest<HTMLElement>('aside');
    flushSync(close);
    // Opening the editor removes the Edit button, so the removed button cannot get the focus back.
    if (previous instanceof HTMLElement && previous.isConnected && previous !== document.body) previous.focus();
    else fact?.focus();
  };
}

/** Warns the owner if another client changed or deleted the fact after the edit began. */
function Conflict({ draft: { base, ...typed }, present, deleted, setDraft }: Props) {
  // A changed lifetime is not a conflict, because this form does not edit the lifetime.
  const same = present ? present.value === base.value && categoryAndTagsText(present) === categoryAndTagsText(base) : !deleted;
  if (same) return <div role="status" />;
  return (
    <div role="status" className="conflict">
      {present ? (
        <>
          <p>
            <bdi>{present.client}</bdi> changed this fact while you were editing, on {fullDate(present.updated_at)}. Your text is
            still here. If you save your text, it replaces the new version.
          </p>
          <ChangedText before={base.value} after={present.value} />
          <ChangedCategoryAndTags before={base} after={present} />
          <p className="buttons">
            <Button label="Keep mine" onClick={() => setDraft({ ...typed, base: present })} />
            <Button label="Use theirs" onClick={() => setDraft(draftOf(present))} />
          </p>
        </>
      ) : (
        <p>
          This fact was deleted while you were editing. Your text is still here. If you save your text, it becomes a new fact.
        </p>
      )}
    </div>
  );
}
