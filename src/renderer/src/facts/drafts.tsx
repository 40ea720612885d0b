import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import type { FactDetail } from '../../../contract/fact.ts';
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
  const unsaved = [...drafts.values()].some(isChanged);
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

/** Whether a fact of the open memory is being edited. */
export function useEdited(): (key: string) => boolean {
  const [drafts] = useDrafts();
  const { subject } = useMemory();
  return (key) => drafts.has(nameOf(subject, key));
}

/** The draft of one fact in the open memory, and how to keep or drop it. */
export function useDraft(key: string): readonly [Draft | undefined, (draft: Draft | undefined) => void] {
  const [drafts, keep] = useDrafts();
  const name = nameOf(useMemory().subject, key);
  return [drafts.get(name), useCallback((draft) => keep(name, draft), [keep, name])];
}

function useDrafts() {
  const context = useContext(Context);
  if (!context) throw new Error('Nothing can be edited here.');
  return context;
}

/** No subject holds a blank. */
const nameOf = (subject: string, key: string): string => `${subject} ${key}`;
