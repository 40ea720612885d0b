import { useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { InboxItem } from '../../../contract/inbox.ts';
import { useDesktopConfirms, useMemory } from '../memory-context.tsx';
import { usePagedOperation } from '../paging.ts';
import type { Place } from '../place.ts';
import { counted } from '../time.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { Confirm, useConfirmed } from '../ui/confirm.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Kbd } from '../ui/kbd.tsx';
import { Page } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';
import { type Changes, EditDialog } from './edit-dialog.tsx';
import { InboxCard } from './item.tsx';
import { DELETES, KeepDialog } from './keep-dialog.tsx';
import { nameOf } from './request.tsx';

const PAGE = 50;

type Dialog = { readonly kind: 'edit' | 'keep'; readonly item: InboxItem } | { readonly kind: 'drop-all' } | undefined;

/** Lists the writes that wait until the owner keeps or drops them (R-WIN-54). */
export function InboxPage({ go }: { go: (place: Place) => void }) {
  const { call } = useMemory();
  const { showToast } = useToast();
  const desktopConfirms = useDesktopConfirms();
  const confirmed = useConfirmed();
  const { pages, error, isPending, isLoading, showMore } = usePagedOperation('inbox', PAGE);
  const items = pages.flatMap((page) => page.items);
  const total = pages.at(-1)?.total ?? 0;
  const { list, current, setCurrent, move, leave } = useCurrentItem(items);
  const [dialog, setDialog] = useState<Dialog>();
  const close = (): void => setDialog(undefined);

  const onDone = (item: InboxItem, text: string): void => {
    // Close a dialog first, because it restores the focus to the item that disappears now.
    flushSync(close);
    leave(item.id);
    showToast({ text, about: nameOf(item) });
  };
  const keep = async (item: InboxItem, changes: Changes = {}): Promise<void> => {
    const { overwrote } = await call('acceptInbox', { id: item.id, ...changes });
    onDone(item, doneText(item, overwrote !== undefined));
  };
  const drop = async (item: InboxItem): Promise<void> => {
    await call('dropInbox', { id: item.id });
    onDone(item, 'Dropped.');
  };
  const dropAll = async (): Promise<void> => {
    const { dropped } = await call('dropInbox', { all: true });
    showToast({ text: `${counted(dropped, 'item')} dropped.` });
  };
  const startDropAll = (): void => confirmed(dropAll, () => setDialog({ kind: 'drop-all' }));
  const asksFirst = ({ operation }: InboxItem): boolean => DELETES.has(operation) && !desktopConfirms;
  useActions([
    { name: 'Next item', keys: ['j', 'ArrowDown'], run: () => move(1) },
    { name: 'Previous item', keys: ['k', 'ArrowUp'], run: () => move(-1) },
    ...(items.length > 0 ? [{ name: 'Drop all items…', keys: ['shift+Backspace', 'shift+Delete'], run: startDropAll }] : []),
  ]);

  return (
    <Page
      title="Inbox"
      description="What waits for you: changes that agents in quarantine asked for, and statements that were captured from your prompts. No agent sees an item before you keep it."
    >
      <LoadError error={error} />
      {items.length > 0 && (
        <div className="line">
          <span role="status">{counted(total, 'item')} to review, oldest first</span>
          <Button label="Drop all…" look="link" className="danger" onClick={startDropAll} />
        </div>
      )}
      {items.length > 0 && <Shortcuts />}
      <ol ref={list} className="plain cards" aria-label="Items to review">
        {items.map((item) => (
          <InboxCard
            key={item.id}
            item={item}
            isCurrent={item.id === current}
            setCurrent={() => setCurrent(item.id)}
            keep={async () => (asksFirst(item) ? setDialog({ kind: 'keep', item }) : keep(item))}
            edit={() => setDialog({ kind: 'edit', item })}
            drop={() => drop(item)}
          />
        ))}
      </ol>
      {showMore && (
        <p className="buttons">
          <Button label="Show more" disabled={isLoading} onClick={showMore} />
        </p>
      )}
      {!isPending && !error && items.length === 0 && <Empty go={go} />}
      {dialog?.kind === 'edit' && <EditDialog item={dialog.item} keep={(changes) => keep(dialog.item, changes)} close={close} />}
      {dialog?.kind === 'keep' && <KeepDialog item={dialog.item} keep={() => keep(dialog.item)} close={close} />}
      {dialog?.kind === 'drop-all' && (
        <Confirm title="Drop everything in the Inbox?" button="Drop all" run={dropAll} close={close}>
          <p>{counted(total, 'item')} will be deleted. You can't undo this. Facts stay as they are.</p>
        </Confirm>
      )}
    </Page>
  );
}

function Shortcuts() {
  return (
    <p className="quiet small">
      <Kbd shortcut="j" /> next, <Kbd shortcut="k" /> previous, <Kbd shortcut="a" /> keep or allow, <Kbd shortcut="e" /> edit and
      keep, <Kbd shortcut="d" /> drop
    </p>
  );
}

function doneText({ operation }: InboxItem, isReplaced: boolean): string {
  if (operation !== 'remember' && operation !== 'patch') return 'Done.';
  return isReplaced ? 'Kept. The earlier value is in the history of the fact.' : 'Kept.';
}

/** The current item, and functions that move the focus from item to item. */
function useCurrentItem(items: readonly InboxItem[]) {
  const list = useRef<HTMLOListElement>(null);
  const [current, setCurrent] = useState<string>();
  const focusAt = (index: number): void => list.current?.querySelectorAll<HTMLElement>('article')[index]?.focus();
  const indexOf = (id: string | undefined): number => items.findIndex((item) => item.id === id);
  return {
    list,
    current,
    setCurrent,
    move: (step: 1 | -1): void => focusAt(Math.max(0, Math.min(items.length - 1, indexOf(current) + step))),
    /** Moves the focus away from an item that disappears. */
    leave: (id: string): void => {
      const index = indexOf(id);
      if (items.length > 1) focusAt(index + 1 < items.length ? index + 1 : index - 1);
      else list.current?.closest('main')?.querySelector('h1')?.focus();
    },
  };
}

function Empty({ go }: { go: (place: Place) => void }) {
  return (
    <div className="empty">
      <p>Nothing to review.</p>
      <p>
        Under Connect, you can put an agent in quarantine: then everything it wants to change waits here. There you can also let
        Helmdeck Memory propose facts from what you say to an agent.
      </p>
      <Button label="Choose for your agents" onClick={() => go({ at: 'clients' })} />
    </div>
  );
}
