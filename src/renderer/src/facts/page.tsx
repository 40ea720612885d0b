import { useDeferredValue, useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { ForgetReceipt } from '../../../contract/forget.ts';
import { useAway } from '../away.ts';
import { useIsAsked, useMemory } from '../memory-context.tsx';
import type { FactsFilter, Place } from '../place.ts';
import { dayOf } from '../time.ts';
import type { Action } from '../ui/action.ts';
import { useActions } from '../ui/actions.tsx';
import { Footer } from '../ui/footer.tsx';
import { isAway } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';
import { FactDetail } from './detail.tsx';
import { type Draft, draftOf, isChanged, useDraft, useEdited } from './drafts.tsx';
import { ForgetMany } from './forget-many.tsx';
import { useForgetting } from './forgetting.ts';
import { FactList, type ListHandle } from './list.tsx';
import { Names } from './names.tsx';
import { Nothing } from './nothing.tsx';
import { Peek } from './peek.tsx';
import { filterName, isSameFilter, readQuestion, scopeOf } from './question.ts';
import { type Sort, useRows } from './rows.ts';
import { TtlEditor } from './ttl-editor.tsx';

interface Props {
  readonly filter: FactsFilter;
  readonly go: (place: Place) => void;
}

/** What stands above the page at this moment. A lifetime is that of one fact, wherever the choice goes meanwhile. */
type Above = 'peek' | 'forget-many' | { readonly lifetimeOf: string; readonly by: 'row' | 'button' } | undefined;

/** Facts as a list and one of them in full. */
export function FactsPage({ filter, go }: Props) {
  const { ask } = useMemory();
  const isAsked = useIsAsked();
  const { say } = useToast();
  const [text, setText] = useState('');
  // What expires soon is shown by its end unless the owner chose otherwise there.
  const [sorts, setSorts] = useState<Readonly<Record<'all' | 'soon', Sort>>>({ all: 'updated', soon: 'expires' });
  const group = filter.expiring_within === undefined ? 'all' : 'soon';
  const sort = sorts[group];
  const setSort = (next: Sort): void => setSorts({ ...sorts, [group]: next });
  const [opened, setOpened] = useState(false);
  const [history, setHistory] = useState(false);
  const [above, setAbove] = useState<Above>();
  const search = useRef<HTMLInputElement>(null);
  const names = useRef<HTMLSelectElement>(null);
  const list = useRef<ListHandle>(null);
  const detail = useRef<HTMLElement>(null);

  const away = useAway() === true;
  const typed = readQuestion(text);
  // Another filter was chosen since: the text names one that is not shown.
  if (typed.only && !away && !isSameFilter(typed.only, filter)) setText(typed.words);
  const words = useDeferredValue(typed.words);
  const { rows, see, open, partial, pending, failure } = useRows({ filter, sort, words });
  const edited = useEdited();
  const unsaved = new Set([...edited].filter(([, draft]) => isChanged(draft)).map(([key]) => key));
  const [selected, select] = useSelection(rows, JSON.stringify([filter, words]), edited);
  const [draft, keepDraft] = useDraft(selected ?? '');
  const forget = useForgetting();

  useEffect(() => {
    // While the memory is locked there is nothing to look for, and single letters go on to act.
    if (!away) search.current?.focus();
  }, [away]);
  const show = (next: FactsFilter): void => {
    setText('');
    go({ at: 'facts', filter: next });
  };
  const look = (next: string): void => {
    const { only } = readQuestion(next);
    setText(next);
    if (only) go({ at: 'facts', filter: only });
    // A filter that was typed goes with its text.
    else if (typed.only) go({ at: 'facts', filter: {} });
  };
  const copy = (): void => {
    if (selected === undefined) return;
    ask('recall', { key: selected })
      .then(({ value }) => navigator.clipboard.writeText(value))
      .then(
        () => say({ text: 'Copied.' }, 2000),
        (error: Error) => say({ text: error.message }),
      );
  };
  const edit = (): void => {
    if (selected === undefined || draft) return;
    setOpened(true);
    ask('recall', { key: selected }).then(
      (fact) => keepDraft(draftOf(fact)),
      (error: Error) => say({ text: error.message }),
    );
  };
  /** Beside what it was asked for by: where the eyes are. */
  const renew = (by: 'row' | 'button'): void => {
    if (selected === undefined) return;
    if (by === 'row') list.current?.reveal();
    setAbove({ lifetimeOf: selected, by });
  };
  /** In a narrow window the fact lies over the list: what the keys go to there must not stay beneath it. */
  const toField = (act: () => void): void => {
    setOpened(false);
    act();
  };
  const openDetail = (): void => {
    // Nothing that is not shown takes the keys.
    flushSync(() => setOpened(true));
    // Arrows go on to scroll what is long.
    (detail.current?.querySelector<HTMLElement>('.value[tabindex]') ?? detail.current)?.focus();
  };
  const toList = (): void => {
    setOpened(false);
    list.current?.enter();
  };
  const filtered = filterName(filter);
  const scope = words === '' ? scopeOf(filter) : undefined;
  const forgotten = ({ deleted }: ForgetReceipt): void =>
    say({ text: deleted === 1 ? '1 fact forgotten.' : `${deleted.toLocaleString()} facts forgotten.` });
  const forgetMany = (): void => {
    if (!isAsked) setAbove('forget-many');
    else if (scope !== undefined) ask('forget', { scope }).then(forgotten, (error: Error) => say({ text: error.message }));
  };
  const acts = { copy, renew: () => renew('button'), edit, forget: () => selected !== undefined && void forget(selected) };

  useActions([
    { name: 'Search facts', keys: ['/', 'mod+f'], whileTyping: true, run: () => toField(() => search.current?.select()) },
    { name: 'Choose a tag or client', keys: ['t'], run: () => toField(() => names.current?.focus()) },
    ...(selected === undefined
      ? []
      : ([
          { name: 'Copy value', keys: ['Enter'], run: copy },
          { name: 'Peek', keys: [' '], run: () => setAbove(above === 'peek' ? undefined : 'peek') },
          { name: 'Change lifetime', keys: ['e'], run: () => renew('row') },
          { name: 'Edit value, category and tags', keys: ['v'], run: edit },
          { name: 'Show or hide history', keys: ['h'], run: () => setHistory(!history) },
          { name: 'Open the fact', keys: ['ArrowRight'], run: openDetail },
          { name: 'Forget', keys: ['Backspace', 'Delete'], run: acts.forget },
        ] satisfies Action[])),
    { name: 'Back to the list', keys: ['ArrowLeft', 'Escape'], run: toList },
    ...(scope === undefined || rows.length === 0
      ? []
      : [
          {
            name: `Forget every fact ${filtered ?? 'there is'}…`,
            keys: ['shift+Backspace', 'shift+Delete'],
            run: forgetMany,
          },
        ]),
    {
      name: sort === 'updated' ? 'Show what goes first on top' : 'Show what changed last on top',
      keys: ['s'],
      run: () => setSort(sort === 'updated' ? 'expires' : 'updated'),
    },
  ]);

  return (
    <>
      {/* Told by whatever in it takes the keys. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <main
        className="list"
        aria-label="Facts"
        // Not when the whole window has the keys again, nor when what stood above gives them back.
        onFocus={({ relatedTarget }) => relatedTarget && !relatedTarget.closest('dialog, [popover]') && setOpened(false)}
      >
        <input
          ref={search}
          type="search"
          placeholder="Search facts"
          aria-label="Search facts"
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={({ target }) => look(target.value)}
          onKeyDown={(event) => {
            // These keys choose among the signs that are being composed.
            if (event.nativeEvent.isComposing) return;
            if (event.key === 'Escape') look('');
            if (event.key !== 'ArrowDown' && event.key !== 'Enter') return;
            // Else the arrow would scroll the list that has the focus by then.
            event.preventDefault();
            list.current?.enter();
          }}
        />
        <div className="heading">
          <Shown filter={filter} clear={() => show({})} />
          <p className="said" role="status" aria-live="polite">
            {failure ? (
              !isAway(failure) && failure.message
            ) : (
              <span className="count">{countOf(rows.length, { open, partial, pending, words })}</span>
            )}
          </p>
          {filtered !== undefined && scope !== undefined && rows.length > 0 && (
            <button type="button" className="inline danger" onClick={forgetMany}>
              Forget them all…
            </button>
          )}
          <span className="choosers">
            <Names ref={names} filter={filter} show={show} ready={!pending} />
            {words === '' && (
              <select aria-label="Order" value={sort} onChange={({ target }) => setSort(target.value as Sort)}>
                <option value="updated">Last changed</option>
                <option value="expires">Goes first</option>
              </select>
            )}
          </span>
        </div>
        {rows.length > 0 ? (
          <FactList
            ref={list}
            rows={rows}
            selected={selected}
            select={(key) => {
              if (above === 'peek') setAbove(undefined);
              select(key);
            }}
            unsaved={unsaved}
            open={(key) => {
              select(key);
              setOpened(true);
            }}
            see={see}
          />
        ) : failure === undefined ? (
          !pending && <Nothing filter={filter} words={words} go={go} clear={() => (words === '' ? show({}) : look(''))} />
        ) : (
          isAway(failure) && (
            <div className="empty">
              <p>No fact can be read while the key is away.</p>
            </div>
          )
        )}
      </main>
      <aside ref={detail} className="detail" aria-label="Fact" tabIndex={-1} data-open={(opened && selected) || undefined}>
        {selected === undefined ? (
          rows.length > 0 && <p className="quiet hint">Choose a fact to read it.</p>
        ) : (
          <>
            <button type="button" className="button back" onClick={toList}>
              Back
            </button>
            <FactDetail
              key={selected}
              factKey={selected}
              why={rows.find(({ key }) => key === selected)?.why}
              show={show}
              history={history}
              toggleHistory={() => setHistory(!history)}
              acts={acts}
            />
          </>
        )}
      </aside>
      <Footer chosen={selected !== undefined} copy={copy} forget={acts.forget} />
      {above === 'peek' && selected !== undefined && <Peek factKey={selected} close={() => setAbove(undefined)} />}
      {typeof above === 'object' && (
        <TtlEditor
          factKey={above.lifetimeOf}
          by={above.by}
          close={() => setAbove(undefined)}
          kept={(end) => say({ text: `Goes ${dayOf(end)}.` }, 4000)}
        />
      )}
      {above === 'forget-many' && scope !== undefined && (
        <ForgetMany filter={filter} scope={scope} close={() => setAbove(undefined)} forgotten={forgotten} />
      )}
    </>
  );
}

/**
 * What is chosen, and when it goes, what stands in its place; in another list nothing does. What is being edited stays,
 * whether it is there or not, and whoever comes back to it finds it chosen.
 */
function useSelection(rows: readonly { readonly key: string }[], list: string, edited: ReadonlyMap<string, Draft>) {
  const [chosen, setChosen] = useState<{ readonly key: string; readonly at: number; readonly list: string }>();
  const found = chosen === undefined ? -1 : rows.findIndex(({ key }) => key === chosen.key);
  const at = found === -1 && chosen?.list === list ? Math.min(chosen.at, rows.length - 1) : found;
  const waiting = [...edited.keys()].at(-1);
  const present = chosen === undefined ? waiting : edited.has(chosen.key) ? chosen.key : rows[at]?.key;
  if (present !== undefined && (chosen?.key !== present || chosen.at !== at || chosen.list !== list)) {
    setChosen({ key: present, at, list });
  }
  const select = (key: string): void => setChosen({ key, at: rows.findIndex((row) => row.key === key), list });
  return [present, select] as const;
}

interface Count {
  readonly open: boolean;
  readonly partial: boolean;
  readonly pending: boolean;
  readonly words: string;
}

function countOf(shown: number, { open, partial, pending, words }: Count): string {
  if (pending) return '';
  const noun = words === '' ? 'fact' : 'hit';
  const count = `${shown.toLocaleString()}${open ? ' or more' : ''} ${shown === 1 && !open ? noun : `${noun}s`}`;
  return partial ? `${count}, still looking` : count;
}

/** Which facts are shown, where not all are. */
function Shown({ filter, clear }: { filter: FactsFilter; clear: () => void }) {
  const name = filterName(filter);
  if (name === undefined) return undefined;
  return (
    <button type="button" className="chip" onClick={clear} aria-label={`Only facts ${name}; show all`}>
      <span title={name}>{name}</span> <span aria-hidden="true">×</span>
    </button>
  );
}
