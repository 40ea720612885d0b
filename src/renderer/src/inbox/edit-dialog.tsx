import { type KeyboardEvent, useRef, useState } from 'react';
import type { InboxItem } from '../../../contract/inbox.ts';
import { TAGS, TTL } from '../../../contract/limits.ts';
import type { OperationRequest } from '../../../contract/operations.ts';
import { tagsOf } from '../facts/drafts.tsx';
import { PRESETS } from '../facts/lifetime.ts';
import { useTask } from '../task.ts';
import { duration } from '../time.ts';
import { Button } from '../ui/button.tsx';
import { DialogButtons } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { Field, TextField } from '../ui/field.tsx';

const LABELS = { key: 'Key', value: 'Value', category: 'Category', tags: 'Tags', ttl_seconds: 'Lifetime' };

export type Changes = Omit<OperationRequest<'acceptInbox'>, 'id'>;

interface Props {
  readonly item: InboxItem;
  /** Keeps the item, and closes the dialog. */
  readonly keep: (changes: Changes) => Promise<void>;
  readonly close: () => void;
}

/** Edits a fact of the Inbox before it is kept. Only the changed fields are sent. */
export function EditDialog({ item, keep, close }: Props) {
  const { key = '', value = '', category = '', tags = [], ttl_seconds: lifetime = TTL.default } = item;
  const [typed, setTyped] = useState({ key, value, category, tags: tags.join('\n'), lifetime });
  const { busy, failure, submit } = useTask(LABELS);
  const form = useRef<HTMLFormElement>(null);
  const onSubmit = submit(async () => {
    await keep({
      ...(typed.key !== key && { key: typed.key }),
      ...(typed.value !== value && { value: typed.value }),
      ...(typed.category !== category && { category: typed.category }),
      ...(typed.tags !== tags.join('\n') && { tags: tagsOf(typed) }),
      ...(typed.lifetime !== lifetime && { ttl_seconds: typed.lifetime }),
    });
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) form.current?.requestSubmit();
  };
  const isPreset = PRESETS.some(({ seconds }) => seconds === lifetime);
  return (
    <Dialog title="Edit and keep" close={close} className="wide">
      {/* The form handles the keyboard shortcut of its fields. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <form ref={form} className="fields" onSubmit={onSubmit} onKeyDown={onKeyDown}>
        <Field label="Value">
          {(about) => (
            <textarea
              {...about}
              rows={6}
              required
              value={typed.value}
              onChange={({ target }) => setTyped({ ...typed, value: target.value })}
            />
          )}
        </Field>
        <TextField
          label="Key"
          {...(item.current !== undefined && { hint: 'A fact is stored under this key. Keeping the item replaces that value.' })}
          required
          value={typed.key}
          change={(next) => setTyped({ ...typed, key: next })}
        />
        <TextField label="Category" required value={typed.category} change={(next) => setTyped({ ...typed, category: next })} />
        <Field label={`Tags, one per line, up to ${TAGS.max}`}>
          {(about) => (
            <textarea
              {...about}
              rows={3}
              value={typed.tags}
              onChange={({ target }) => setTyped({ ...typed, tags: target.value })}
            />
          )}
        </Field>
        <Field label="Lifetime">
          {(about) => (
            <select
              {...about}
              value={typed.lifetime}
              onChange={({ target }) => setTyped({ ...typed, lifetime: Number(target.value) })}
            >
              {!isPreset && <option value={lifetime}>{duration(lifetime)}</option>}
              {PRESETS.map(({ name, seconds }) => (
                <option key={name} value={seconds}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <ErrorText text={failure} />
        <DialogButtons close={close}>
          <Button label="Keep" type="submit" look="primary" disabled={busy} />
        </DialogButtons>
      </form>
    </Dialog>
  );
}
