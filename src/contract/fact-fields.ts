import * as z from 'zod';
import { CATEGORY, KEY_BYTES, RESERVED_CATEGORIES, RESERVED_KEY_PREFIXES, TAGS, TTL, VALUE_BYTES } from './limits.ts';
import { fitsBytes, foldCase, lazy, notTextError, visibleText } from './schema.ts';

/** Invisible characters and line breaks. They would let two different keys look the same. */
const invisible = lazy(() => /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
const loneSurrogate = /\p{Cs}/u;

const reservedKey = (key: string): boolean => {
  const visible = visibleText(key);
  return RESERVED_KEY_PREFIXES.some((prefix) => visible.startsWith(prefix));
};

/** The character rules of keys and tags. */
const plain = (text: z.ZodString) =>
  text
    .refine((name) => !invisible().test(name), { error: 'contains an invisible or control character; remove it', abort: true })
    .refine((name) => name === name.normalize('NFC'), { error: 'is not in Unicode normal form C; normalize it to NFC first' });

/** A key that is not in normal form is refused, not rewritten: an agent must find a fact under the key it sent. */
export const KeyField = lazy(() =>
  plain(
    z
      .string({ error: notTextError })
      .trim()
      .min(1, { error: 'is missing or blank; send a short, stable name such as preferences/editor', abort: true })
      .refine((key) => fitsBytes(key, KEY_BYTES), {
        error: `is longer than ${KEY_BYTES} bytes; shorten it and move the rest into the value`,
        abort: true,
      }),
  )
    .refine((key) => !reservedKey(key), {
      error: `begins with ${RESERVED_KEY_PREFIXES.join(' or ')}, which is reserved; choose another key`,
    })
    .describe(
      `Stable name of the fact, 1 to ${KEY_BYTES} bytes, without control or invisible characters. Use slashes for a hierarchy, as in preferences/editor.`,
    ),
);

/** A lone surrogate has no UTF-8 encoding, so the stored text would differ from the text sent. */
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
      `The fact itself: prose, JSON or a snippet, 1 byte to ${VALUE_BYTES / 1024} KiB. Never a password, token or other secret.`,
    ),
);

const categoryShape =
  'must have 1 to 64 characters of a-z, 0-9, "_", "." and "-" and begin with a letter or digit; choose a simpler one';

/** Case is folded first, so that no other spelling of a reserved category is accepted. */
export const CategoryField = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    // At most two UTF-16 units fold to one of the 64 characters, so longer text is invalid and need not be folded.
    .refine((category) => category.length <= 2 * 64, { error: categoryShape, abort: true })
    .transform(foldCase)
    .pipe(
      z
        .string()
        .regex(CATEGORY.pattern, { error: categoryShape, abort: true })
        .refine((category) => !RESERVED_CATEGORIES.has(category), { error: 'is reserved; choose another category' }),
    )
    .describe(
      `Group of the fact, such as preferences or decisions. Stored in lower case. Reserved: ${[...RESERVED_CATEGORIES].join(', ')}.`,
    ),
);

const tagLength = `must have 1 to ${TAGS.characters} characters; shorten it or leave it out`;

const Tag = lazy(() =>
  plain(
    z
      .string({ error: notTextError })
      .trim()
      .min(1, { error: tagLength, abort: true })
      // A character has at most two UTF-16 units, so longer text is refused without counting its characters.
      .refine((tag) => tag.length <= 2 * TAGS.characters && Array.from(tag).length <= TAGS.characters, {
        error: tagLength,
        abort: true,
      }),
  ),
);

export const TagsField = lazy(() =>
  z
    .array(Tag(), { error: 'must be a list of texts; send a JSON array' })
    .max(TAGS.max, { error: `must be at most ${TAGS.max}; send the tags that you would search for`, abort: true })
    .transform((tags) => [...new Set(tags)])
    .describe(
      `At most ${TAGS.max} words to find the fact by, each of 1 to ${TAGS.characters} characters. Duplicates are dropped.`,
    ),
);

const lifetimeBounds = `must be 0 or a whole number of seconds from ${TTL.min} to ${TTL.max}; send it as a JSON number`;

/** The bounds are checked before any arithmetic, because an overflowing number would become a wrong expiry date. */
export const LifetimeField = lazy(() =>
  z
    .int({ error: lifetimeBounds })
    .min(0, { error: lifetimeBounds })
    .max(TTL.max, { error: lifetimeBounds })
    .refine((seconds) => seconds === 0 || seconds >= TTL.min, { error: lifetimeBounds })
    .transform((seconds) => seconds || TTL.default)
    .describe(`Seconds until the fact expires: ${TTL.min} (an hour) to ${TTL.max} (a year). 0 means ${TTL.default} (90 days).`),
);

/** Folded like a stored category, so that a caller finds a category under the spelling it was stored with. */
export const CategoryFilter = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    .refine((category) => category.length <= 2 * 64, { error: categoryShape, abort: true })
    .transform(foldCase)
    .describe('Only facts in this category.'),
);

export const PageCursor = lazy(() =>
  z
    .string({ error: notTextError })
    .max(1024, { error: 'is not a valid cursor; send next_cursor unchanged' })
    .describe('next_cursor of the previous page.'),
);
