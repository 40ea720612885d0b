import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import type { FactDetail } from '../../../contract/fact.ts';
import { reportUnsaved } from '../desktop-bridge.ts';
import { useContentHidden } from '../hidden.ts';
import { useMemory } from '../memory-context.tsx';

/** An unsaved edit of a fact: the typed text, and the fact as it was when the edit began. */
export interface Draft {
  readonly base: FactDetail;
  readonly value: string;
  readonly category: string;
  /** One tag per line, because a tag can contain any character except a line break. */
  readonly tags: string;
}

export const draftOf = (base: FactDetail): Draft => ({
  base,
  value: base.value,
  category: base.category,
  tags: base.tags.join('\n'),
});

export const tagsOf = ({ tags }: Pick<Draft, 'tags'>): string[] =>
  tags
    .split('\n')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');

export function isChanged(draft: Draft): boolean {
  const { base, value, category } = draft;
  return value !== base.value || category !== base.category || tagsOf(draft).join('\n') !== base.tags.join('\n');
}

type Drafts = ReadonlyMap<string, Draft>;

const Context = createContext<readonly [Drafts, (name: string, draft: Draft | undefined) => void] | undefined>(undefined);

/** Keeps unsaved edits while the owner opens other pages or other clients change the facts (R-WIN-11). */
export function DraftsProvider({ children }: { children: ReactNode }) {
  const { bridge } = useMemory();
  const [drafts, setDrafts] = useState<Drafts>(new Map());
  const setDraft = useCallback((name: string, draft: Draft | undefined): void => {
    setDrafts((before) => {
      const others = [...before].filter(([other]) => other !== name);
      return new Map(draft ? [...others, [name, draft]] : others);
    });
  }, []);
  const changed = [...drafts].filter(([, draft]) => isChanged(draft));
  const unsaved = changed.length > 0;
  // While the memory is locked, discard drafts without changes. Drafts with changes are kept but hidden (R-LOCK-02).
  if (useContentHidden() === true && changed.length < drafts.size) setDrafts(new Map(changed));
  useEffect(() => reportUnsaved(bridge, unsaved), [bridge, unsaved]);
  useEffect(() => {
    if (!unsaved) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [unsaved]);
  const context = useMemo(() => [drafts, setDraft] as const, [drafts, setDraft]);
  return <Context value={context}>{children}</Context>;
}

/** Returns the drafts for facts of the open memory, by fact key. Empty while the content is hidden. */
export function useDrafts(): Drafts {
  const [drafts] = useDraftsContext();
  const { subject } = useMemory();
  const hidden = useContentHidden() === true;
  return useMemo(() => {
    const prefix = nameOf(subject, '');
    const own = hidden ? [] : [...drafts].filter(([name]) => name.startsWith(prefix));
    return new Map(own.map(([name, draft]) => [name.slice(prefix.length), draft]));
  }, [drafts, subject, hidden]);
}

/** Returns the draft of one fact, and a function that replaces or discards the draft. */
export function useDraft(key: string): readonly [Draft | undefined, (draft: Draft | undefined) => void] {
  const [, setDraft] = useDraftsContext();
  const name = nameOf(useMemory().subject, key);
  return [useDrafts().get(key), useCallback((draft) => setDraft(name, draft), [setDraft, name])];
}

function useDraftsContext() {
  const context = useContext(Context);
  if (!context) throw new Error('useDrafts needs a DraftsProvider.');
  return context;
}

/** Returns the name of a fact's draft. The name is unique, because a subject cannot contain a space. */
const nameOf = (subject: string, key: string): string => `${subject} ${key}`;
