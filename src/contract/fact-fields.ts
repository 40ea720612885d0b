import * as z from 'zod';
import { CATEGORY, CATEGORY_RULE, RESERVED_CATEGORIES, RESERVED_KEY_PREFIXES } from './categories.ts';
import { KEY_BYTES, TAGS, TTL, VALUE_BYTES } from './limits.ts';
import { fitsBytes, foldCase, lazy, notTextError, visibleText } from './schema.ts';

/** Invisible characters and line breaks, which keys and tags must not contain, because different ones could look alike. */
const invisible = lazy(() => /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
const loneSurrogate = /\p{Cs}/u;

const reservedKey = (key: string): boolean => {
  const visible = visibleText(key);
  return RESERVED_KEY_PREFIXES.some((prefix) => visible.startsWith(prefix));
};

/** Adds the rules for the characters that keys and tags can contain. */
const visibleOnly = (text: z.ZodString) =>
  text
    .refine((name) => !invisible().test(name), { error: 'contains an invisible or control character; remove it', abort: true })
    .refine((name) => name === name.normalize('NFC'), {
      error: 'is not in Unicode normalization form C (NFC); normalize it to NFC first',
    });

/**
 * The key of a fact. A key that is not in NFC is refused instead of normalized, so that the stored key is always the key that was
 * sent.
 */
export const KeyField = lazy(() =>
  visibleOnly(
    z
      .string({ error: notTextError })
      .trim()
      .min(1, { error: 'is missing or blank; send a short, stable name such as `preferences/editor`', abort: true })
      .refine((key) => fitsBytes(key, KEY_BYTES), {
        error: `is longer than ${KEY_BYTES} bytes; shorten it and move the rest into the value`,
        abort: true,
      }),
  )
    .refine((key) => !reservedKey(key), {
      error: `begins with ${RESERVED_KEY_PREFIXES.join(' or ')}, which is reserved; choose another key`,
    })
    .describe(
      `Stable name of the fact: 1 to ${KEY_BYTES} bytes, without control or invisible characters. Use slashes for a hierarchy, as in \`preferences/editor\`.`,
    ),
);

/**
 * The value of a fact. A lone surrogate is refused: it has no UTF-8 encoding, so the stored text would differ from the text that
 * was sent.
 */
export const FactValue = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    .min(1, { error: 'is missing or blank; send the text to remember', abort: true })
    .refine((value) => fitsBytes(value, VALUE_BYTES), {
      error: `is longer than ${VALUE_BYTES / 1024} KiB; store a summary here and the rest in a file`,
      abort: true,
    })
    .refine((value) => !loneSurrogate.test(value), { error: 'contains half of a surrogate pair; send well-formed Unicode' })
    .describe(
      `Text of the fact: prose, JSON or a code snippet, 1 byte to ${VALUE_BYTES / 1024} KiB. Do not store passwords, tokens or other secrets.`,
    ),
);

/** The category of a fact. Case is folded before the check for reserved categories, so that `CACHE` is refused like `cache`. */
export const CategoryField = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    // Refuse text over 128 UTF-16 units before case folding: no valid category is longer, and folding long text is slow.
    .refine((category) => category.length <= 2 * 64, { error: CATEGORY_RULE, abort: true })
    .transform(foldCase)
    .pipe(
      z
        .string()
        .regex(CATEGORY.pattern, { error: CATEGORY_RULE, abort: true })
        .refine((category) => !RESERVED_CATEGORIES.has(category), { error: 'is reserved; choose another category' }),
    )
    .describe(
      `Group of the fact, such as \`preferences\` or \`decisions\`. Stored in lower case. These categories are reserved: ${[...RESERVED_CATEGORIES].join(', ')}.`,
    ),
);

const tagLength = `must have 1 to ${TAGS.characters} characters; shorten it or leave it out`;

const Tag = lazy(() =>
  visibleOnly(
    z
      .string({ error: notTextError })
      .trim()
      .min(1, { error: tagLength, abort: true })
      // A character has at most two UTF-16 units, so a longer text is refused without the cost of counting characters.
      .refine((tag) => tag.length <= 2 * TAGS.characters && Array.from(tag).length <= TAGS.characters, {
        error: tagLength,
        abort: true,
      }),
  ),
);

export const TagsField = lazy(() =>
  z
    .array(Tag(), { error: 'must be a list of texts; send a JSON array' })
    .max(TAGS.max, { error: `must have at most ${TAGS.max} items; send only the tags that you would search for`, abort: true })
    .transform((tags) => [...new Set(tags)])
    .describe(
      `Words that help to find the fact later: at most ${TAGS.max} tags of 1 to ${TAGS.characters} characters each. A fact about one repository has the tag \`project:<name of the repository's root folder>\`. Duplicate tags are removed.`,
    ),
);

const lifetimeBounds = `must be 0 or a whole number of seconds from ${TTL.min} to ${TTL.max}; send it as a JSON number`;

/** The lifetime of a fact in seconds. Out-of-range numbers are refused, because the computed expiry time could overflow. */
export const LifetimeField = lazy(() =>
  z
    .int({ error: lifetimeBounds })
    .min(0, { error: lifetimeBounds })
    .max(TTL.max, { error: lifetimeBounds })
    .refine((seconds) => seconds === 0 || seconds >= TTL.min, { error: lifetimeBounds })
    .transform((seconds) => seconds || TTL.default)
    .describe(`Seconds until the fact expires: ${TTL.min} (an hour) to ${TTL.max} (a year). 0 means ${TTL.default} (90 days).`),
);

/** A filter by category. Its case is folded like that of stored categories, so that `Work` finds `work`. */
export const CategoryFilter = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    .refine((category) => category.length <= 2 * 64, { error: CATEGORY_RULE, abort: true })
    .transform(foldCase)
    .describe('Returns only facts in this category.'),
);

export const PageCursor = lazy(() =>
  z
    .string({ error: notTextError })
    .max(1024, { error: 'is not a valid cursor; send `next_cursor` unchanged' })
    .describe('The `next_cursor` value of the previous page. If absent, the first page is returned.'),
);
