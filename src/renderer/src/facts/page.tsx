import { useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { ForgetReceipt } from '../../../contract/forget.ts';
import { useContentHidden } from '../hidden.ts';
import { useMemory, useOperation } from '../memory-context.tsx';
import type { FactsFilter, Place } from '../place.ts';
import { counted, dayOf } from '../time.ts';
import type { Action } from '../ui/action.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { useConfirmed } from '../ui/confirm.tsx';
import { isKeyUnavailable } from '../ui/errors.tsx';
import { Footer } from '../ui/footer.tsx';
import { useToast } from '../ui/toast.tsx';
import { FactDetail } from './detail.tsx';
import { draftOf, isChanged, useDraft, useDrafts } from './drafts.tsx';
import { EmptyList } from './empty-list.tsx';
import { filterName, scopeOf } from './filter.ts';
import { useForgetFact } from './forget-fact.ts';
import { ForgetMany } from './forget-many.tsx';
import { ListHeader, SearchBox } from './list-header.tsx';
import { FactList, type ListHandle } from './list.tsx';
import { type Sort, useRows } from './rows.ts';
import { useSearchText } from './search-text.ts';
import { useSelection } from './selection.ts';
import { TtlEditor } from './ttl-editor.tsx';

interface Props {
  readonly filter: FactsFilter;
  /** The fact to open first. */
  readonly opened: string | undefined;
  readonly go: (place: Place) => void;
}

/** The open dialog or preview. `lifetimeOf` is the key of the edited fact, because the selection can change during the edit. */
type Overlay = 'preview' | 'forget-many' | { readonly lifetimeOf: string; readonly anchor: 'row' | 'button' } | undefined;

export function FactsPage({ filter, opened: given, go }: Props) {
  const [first] = useState(given);
  const hidden = useContentHidden() === true;
  const { text, words, setText, show } = useSearchText(filter, hidden, go);
  const [sort, setSort] = useSort(filter);
  const list = useRows({ filter, sort, words });
  const { rows } = list;
  const drafts = useDrafts();
  const unsaved = new Set([...drafts].filter(([, draft]) => isChanged(draft)).map(([key]) => key));
  const { selected, select, reselect } = useSelection(rows, JSON.stringify([filter, words]), drafts, first);
  const { showToast } = useToast();
  const { copy, startEdit } = useFactCommands(selected);
  const forgetFact = useForgetFact(reselect);
  const { opened, setOpened, listHandle, detail, focusInList, openDetail, backToList } = useOpenedFact(first !== undefined);
  const [history, setHistory] = useState(false);
  const [overlay, setOverlay] = useState<Overlay>();
  const closeOverlay = (): void => setOverlay(undefined);
  const search = useRef<HTMLInputElement>(null);
  const names = useRef<HTMLSelectElement>(null);

  useEffect(() => {
    // While the memory is locked, do not focus the search box, so that single-letter shortcuts work.
    if (hidden) return;
    if (first === undefined) search.current?.focus();
    else detail.current?.focus();
  }, [hidden, first, detail]);
  const edit = (): void => {
    setOpened(true);
    startEdit();
  };
  const changeLifetime = (anchor: 'row' | 'button'): void => {
    if (selected === undefined) return;
    if (anchor === 'row') listHandle.current?.reveal();
    setOverlay({ lifetimeOf: selected, anchor });
  };
  const forget = (): void => {
    if (selected !== undefined) void forgetFact(selected);
  };
  const { scope, forgetAll, onForgotten } = useForgetMany(filter, words, () => setOverlay('forget-many'));
  const canForgetAll = scope !== undefined && rows.length > 0;
  useFactsActions({
    filter,
    selected,
    focusSearch: () => focusInList(search),
    focusNames: () => focusInList(names),
    copy,
    preview: () => setOverlay(overlay === 'preview' ? undefined : 'preview'),
    changeLifetime: () => changeLifetime('row'),
    edit,
    toggleHistory: () => setHistory(!history),
    open: openDetail,
    forget,
    backToList,
    forgetAll: canForgetAll ? forgetAll : undefined,
    sort,
    setSort,
  });

  return (
    <>
      {/* `<main>` handles the focus events of its child elements. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <main
        className="list"
        aria-label="Facts"
        // Close the opened fact when the focus enters the list, but not when the window is activated or a dialog closes.
        onFocus={({ relatedTarget }) => relatedTarget && !relatedTarget.closest('dialog, [popover]') && setOpened(false)}
      >
        <SearchBox ref={search} text={text} setText={setText} enterList={() => listHandle.current?.enter()} />
        <ListHeader
          names={names}
          filter={filter}
          show={show}
          words={words}
          list={list}
          sort={sort}
          setSort={setSort}
          forgetAll={canForgetAll ? forgetAll : undefined}
        />
        {rows.length > 0 && (
          <FactList
            ref={listHandle}
            rows={rows}
            selected={selected}
            select={(key) => {
              if (overlay === 'preview') closeOverlay();
              select(key);
            }}
            unsaved={unsaved}
            open={(key) => {
              select(key);
              setOpened(true);
            }}
            onVisibleRows={list.onVisibleRows}
          />
        )}
        {rows.length === 0 && isKeyUnavailable(list.failure) && (
          <div className="empty">
            <p>Facts are hidden until the key is available.</p>
          </div>
        )}
        {rows.length === 0 && !list.failure && !list.pending && (
          <EmptyList filter={filter} words={words} go={go} clear={() => (words === '' ? show({}) : setText(''))} />
        )}
      </main>
      <aside ref={detail} className="detail" aria-label="Fact" tabIndex={-1} data-open={(opened && selected) || undefined}>
        {selected === undefined && rows.length > 0 && <p className="quiet hint">Select a fact to read it.</p>}
        {selected !== undefined && (
          <>
            <Button label="Back" className="back" onClick={backToList} />
            <FactDetail
              key={selected}
              factKey={selected}
              why={rows.find(({ key }) => key === selected)?.why}
              show={show}
              history={history}
              toggleHistory={() => setHistory(!history)}
              commands={{ copy, changeLifetime: () => changeLifetime('button'), edit, forget }}
            />
          </>
        )}
      </aside>
      <Footer hasSelection={selected !== undefined} copy={copy} forget={forget} />
      {overlay === 'preview' && selected !== undefined && <Preview factKey={selected} close={closeOverlay} />}
      {typeof overlay === 'object' && (
        <TtlEditor
          factKey={overlay.lifetimeOf}
          anchor={overlay.anchor}
          close={closeOverlay}
          onSaved={(end) => showToast({ text: `Expires ${dayOf(end)}.` }, 4000)}
        />
      )}
      {overlay === 'forget-many' && scope !== undefined && (
        <ForgetMany filter={filter} scope={scope} close={closeOverlay} onForgotten={onForgotten} />
      )}
    </>
  );
}

/**
 * Whether the selected fact is opened, and functions that move the focus between the list and the fact. In a narrow window, an
 * opened fact covers the list.
 */
function useOpenedFact(initially: boolean) {
  const [opened, setOpened] = useState(initially);
  const listHandle = useRef<ListHandle>(null);
  const detail = useRef<HTMLElement>(null);
  /** Closes the opened fact, and then focuses the given field. */
  const focusInList = (field: { readonly current: { focus(): void; select?(): void } | null }): void => {
    setOpened(false);
    field.current?.focus();
    field.current?.select?.();
  };
  const openDetail = (): void => {
    // Render immediately, because only a visible element can take the focus.
    flushSync(() => setOpened(true));
    // Focus the value if it is long enough to scroll, so that the arrow keys scroll the value.
    (detail.current?.querySelector<HTMLElement>('.value[tabindex]') ?? detail.current)?.focus();
  };
  const backToList = (): void => {
    setOpened(false);
    listHandle.current?.enter();
  };
  return { opened, setOpened, listHandle, detail, focusInList, openDetail, backToList };
}

type ActionName =
  | 'focusSearch'
  | 'focusNames'
  | 'copy'
  | 'preview'
  | 'changeLifetime'
  | 'edit'
  | 'toggleHistory'
  | 'open'
  | 'forget'
  | 'backToList';

interface FactsActions extends Readonly<Record<ActionName, () => void>> {
  readonly filter: FactsFilter;
  readonly selected: string | undefined;
  /** Undefined if the list does not offer this action. */
  readonly forgetAll: (() => void) | undefined;
  readonly sort: Sort;
  readonly setSort: (sort: Sort) => void;
}

/** Registers the keyboard shortcuts and palette actions of the page. */
function useFactsActions({ filter, selected, forgetAll, sort, setSort, ...run }: FactsActions): void {
  const filtered = filterName(filter);
  const factActions: readonly Action[] = [
    { name: 'Copy value', keys: ['Enter'], run: run.copy },
    { name: 'Preview value', keys: [' '], run: run.preview },
    { name: 'Change lifetime', keys: ['e'], run: run.changeLifetime },
    { name: 'Edit value, category and tags', keys: ['v'], run: run.edit },
    { name: 'Show or hide history', keys: ['h'], run: run.toggleHistory },
    { name: 'Open fact', keys: ['ArrowRight'], run: run.open },
    { name: 'Forget fact', keys: ['Backspace', 'Delete'], run: run.forget },
  ];
  useActions([
    { name: 'Search facts', keys: ['/', 'mod+f'], whileTyping: true, run: run.focusSearch },
    { name: 'Filter by tag or client', keys: ['t'], run: run.focusNames },
    ...(selected === undefined ? [] : factActions),
    { name: 'Back to the list', keys: ['ArrowLeft', 'Escape'], run: run.backToList },
    ...(forgetAll
      ? [
          {
            name: filtered === undefined ? 'Forget all facts…' : `Forget all facts ${filtered}…`,
            keys: ['shift+Backspace', 'shift+Delete'],
            run: forgetAll,
          },
        ]
      : []),
    {
      name: sort === 'updated' ? 'Sort by expiry' : 'Sort by last change',
      keys: ['s'],
      run: () => setSort(sort === 'updated' ? 'expires' : 'updated'),
    },
  ]);
}

/** Returns the sort order of the list. "Expiring soon" has its own sort order, which lists the earliest expiry first (R-WIN-51). */
function useSort(filter: FactsFilter): readonly [Sort, (sort: Sort) => void] {
  const [sorts, setSorts] = useState<Readonly<Record<'all' | 'soon', Sort>>>({ all: 'updated', soon: 'expires' });
  const group = filter.expiring_within === undefined ? 'all' : 'soon';
  return [sorts[group], (sort) => setSorts({ ...sorts, [group]: sort })];
}

function useFactCommands(selected: string | undefined) {
  const { call } = useMemory();
  const { showToast } = useToast();
  const [draft, setDraft] = useDraft(selected ?? '');
  const showError = (error: Error): void => showToast({ text: error.message });
  return {
    copy: (): void => {
      if (selected === undefined) return;
      call('recall', { key: selected })
        .then(({ value }) => navigator.clipboard.writeText(value))
        .then(() => showToast({ text: 'Copied.' }, 2000), showError);
    },
    startEdit: (): void => {
      if (selected === undefined || draft) return;
      call('recall', { key: selected }).then((fact) => setDraft(draftOf(fact)), showError);
    },
  };
}

/** `forgetAll` forgets all facts that the filter shows. `scope` is undefined for lists that do not offer this action. */
function useForgetMany(filter: FactsFilter, words: string, openDialog: () => void) {
  const { call } = useMemory();
  const { showToast } = useToast();
  const confirmed = useConfirmed();
  const scope = words === '' ? scopeOf(filter) : undefined;
  const onForgotten = ({ deleted }: ForgetReceipt): void => showToast({ text: `${counted(deleted, 'fact')} forgotten.` });
  const forgetAll = (): void => {
    if (scope !== undefined) confirmed(() => call('forget', { scope }).then(onForgotten), openDialog);
  };
  return { scope, forgetAll, onForgotten };
}

/** Shows the value of the selected fact above the list. Escape closes the preview, unless a dialog is open (R-WIN-52). */
function Preview({ factKey, close }: { factKey: string; close: () => void }) {
  const { data, error } = useOperation('recall', { key: factKey });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || document.querySelector('dialog[open], [popover]:popover-open')) return;
      event.preventDefault();
      close();
    };
    addEventListener('keydown', onKeyDown, { capture: true });
    return () => removeEventListener('keydown', onKeyDown, { capture: true });
  });
  return (
    <div className="value-preview" role="status" aria-label={factKey}>
      <p className="meta">{factKey}</p>
      {data?.key === factKey && <pre className="value">{data.value}</pre>}
      {error && <p className="failure">{error.message}</p>}
    </div>
  );
}
