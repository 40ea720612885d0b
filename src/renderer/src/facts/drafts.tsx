import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import type { FactDetail } from '../../../contract/fact.ts';
import { useAway } from '../away.ts';
import { tellUnsaved } from '../desktop-bridge.ts';
import { useMemory } from '../memory-context.tsx';

/** A fact that is being edited, and how it was when that began. */
export interface Draft {
  readonly base: FactDetail;
  readonly value: string;
  readonly category: string;
  /** One a line: a tag may hold every other sign. */
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

/** Keeps what was typed and not saved, wherever the owner goes meanwhile, and whatever others write. */
export function DraftsProvider({ children }: { children: ReactNode }) {
  const { bridge } = useMemory();
  const [drafts, setDrafts] = useState<Drafts>(new Map());
  const keep = useCallback((name: string, draft: Draft | undefined): void => {
    setDrafts((before) => {
      const others = [...before].filter(([other]) => other !== name);
      return new Map(draft ? [...others, [name, draft]] : others);
    });
  }, []);
  const changed = [...drafts].filter(([, draft]) => isChanged(draft));
  const unsaved = changed.length > 0;
  // What was only opened goes with the key; what was typed waits for it, unseen (R-LOCK-02).
  if (useAway() === true && changed.length < drafts.size) setDrafts(new Map(changed));
  useEffect(() => tellUnsaved(bridge, unsaved), [bridge, unsaved]);
  useEffect(() => {
    if (!unsaved) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [unsaved]);
  const context = useMemo(() => [drafts, keep] as const, [drafts, keep]);
  return <Context value={context}>{children}</Context>;
}

/** What is being edited in the open memory, by its key; nothing while that may not be shown. */
export function useEdited(): Drafts {
  const [drafts] = useDrafts();
  const { subject } = useMemory();
  const away = useAway() === true;
  return useMemo(() => {
    const here = nameOf(subject, '');
    const its = away ? [] : [...drafts].filter(([name]) => name.startsWith(here));
    return new Map(its.map(([name, draft]) => [name.slice(here.length), draft]));
  }, [drafts, subject, away]);
}

/** The draft of one fact in the open memory, and how to keep or drop it. */
export function useDraft(key: string): readonly [Draft | undefined, (draft: Draft | undefined) => void] {
  const [, keep] = useDrafts();
  const name = nameOf(useMemory().subject, key);
  return [useEdited().get(key), useCallback((draft) => keep(name, draft), [keep, name])];
}

function useDrafts() {
  const context = useContext(Context);
  if (!context) throw new Error('Nothing can be edited here.');
  return context;
}

/** No subject holds a blank. */
const nameOf = (subject: string, key: string): string => `${subject} ${key}`;
