import { Failure } from '../../contract/failure.ts';
import type { InboxItem } from '../../contract/inbox.ts';
import { operations } from '../../contract/operations.ts';
import { type Caller, signatures } from '../access/caller.ts';
import type { StoredItem } from '../inbox/inbox.ts';
import { markedField } from '../inbox/marks.ts';
import type { RunAccepted } from '../inbox/propose.ts';
import { STEP_BYTES } from '../store/store.ts';
import { formatTime } from '../time/format-time.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import type { Memory, MemoryDeps } from './memory.ts';

/** Operations of the owner on the writes that wait in the Inbox. */
export const inbox = (
  { inbox: items, store }: MemoryDeps,
  run: RunAccepted,
): Pick<Memory, 'inbox' | 'acceptInbox' | 'dropInbox'> => {
  /** The items that are being accepted. An item must not run twice, because the owner can change it between two acceptances. */
  const accepting = new Set<string>();

  const currentValue = async (subject: string, { input }: StoredItem): Promise<string | undefined> => {
    const key = textOf(input['key']);
    return key === undefined ? undefined : (await store.space({ subject }, 'fact').get(key))?.value;
  };

  const rowOf = async (subject: string, item: StoredItem): Promise<InboxItem> => {
    const { id, operation, source, author, createdAt, expiresAt, input } = item;
    const current = await currentValue(subject, item);
    return {
      id,
      operation,
      source,
      ...signatures(author),
      created_at: formatTime(createdAt),
      expires_at: formatTime(expiresAt),
      ...shownFields(item),
      input: JSON.stringify(input),
      ...(current !== undefined && { current }),
      ...markedField({ key: '', value: textsOf(item).join('\n') }),
    };
  };

  return {
    async inbox({ subject }, { limit, cursor }) {
      const after = cursor === undefined ? undefined : decodeCursor(cursor, 'oldest');
      const page = await items.page(subject, { limit, after, characters: STEP_BYTES });
      const [rows, total] = await Promise.all([
        Promise.all(page.items.map((item) => rowOf(subject, item))),
        items.count(subject),
      ]);
      return { items: rows, total, ...(page.next && { next_cursor: encodeCursor(page.next, 'oldest') }) };
    },

    async acceptInbox({ subject }, { id, ...changes }, context) {
      const name = `${subject}:${id}`;
      if (accepting.has(name)) {
        throw new Failure('not_found', 'This item is being accepted already. List the Inbox to see what still waits.');
      }
      accepting.add(name);
      try {
        const item = await items.get(subject, id);
        const { operation, author } = item;
        const input = { ...item.input, ...changes };
        const before = operation === 'remember' ? await currentValue(subject, { ...item, input }) : undefined;
        const result = await run(callerOf(subject, item), operation, input, { ...context, isAccepted: true });
        await items.drop(subject, id);
        const isReplaced = before !== undefined && 'status' in result && result.status === 'updated';
        return { id, operation, client: author.client, ...(isReplaced && { overwrote: before }), result: { ...result } };
      } finally {
        accepting.delete(name);
      }
    },

    async dropInbox({ subject }, { id, client }) {
      if (id === undefined) return { dropped: await items.dropMany(subject, client) };
      if (!(await items.drop(subject, id))) await items.get(subject, id);
      return { dropped: 1 };
    },
  };
};

/**
 * Returns the caller under which an accepted write runs: the client that requested it, with the rights that the operation needs. The
 * client had these rights when the write was held, and the owner grants the write now.
 */
const callerOf = (subject: string, { author, operation }: StoredItem): Caller => ({
  subject,
  client: author.client,
  transport: author.origin,
  token: author.token,
  scopes: new Set(['memory:read', operations[operation].scope]),
  ...(author.definedBy !== undefined && { definedBy: author.definedBy }),
});

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Returns the fields of the input that say what the operation would write. */
function shownFields({ operation, input }: StoredItem): Partial<InboxItem> {
  const fields =
    operation === 'forget' ? (['scope'] as const) : operation === 'remember' || operation === 'patch' ? FACT_FIELDS : [];
  // The input passed the validation of the operation, so the fields have the types of its schema.
  return Object.fromEntries(fields.flatMap((field) => (input[field] === undefined ? [] : [[field, input[field]]])));
}

const FACT_FIELDS = ['key', 'value', 'category', 'tags', 'ttl_seconds', 'supersedes'] as const;

/** Returns every text of the input, which the client chose. The lines of an import are JSON that contains further texts. */
function textsOf({ operation, input }: StoredItem): string[] {
  const collect = (part: unknown): string[] =>
    typeof part === 'string' ? [part] : Object.entries(Object(part)).flatMap(([name, value]) => [name, ...collect(value)]);
  return collect(operation === 'import' ? (input['lines'] as string[]).map((line) => JSON.parse(line) as unknown) : input);
}
