import * as z from 'zod';
import { lazy } from './lazy.ts';
import { CATEGORY, KEY_BYTES, RESERVED_CATEGORIES, RESERVED_KEY_PREFIXES, TAGS, TTL, VALUE_BYTES } from './limits.ts';
import { visibleText, fitsBytes, foldCase, notTextError } from './text.ts';

/** What cannot be seen, or tears a line apart, would make two keys that look alike differ. */
const unseen = lazy(() => /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
const loneSurrogate = /\p{Cs}/u;

const reservedKey = (key: string): boolean => {
  const seen = visibleText(key);
  return RESERVED_KEY_PREFIXES.some((prefix) => seen.startsWith(prefix));
};

/** The character rule that keys and tags share. */
const plain = (text: z.ZodString) =>
  text
    .refine((name) => !unseen().test(name), { error: 'holds an invisible or control character; send it without', abort: true })
    .refine((name) => name === name.normalize('NFC'), { error: 'is not in Unicode normal form C; normalise it to NFC first' });

/** Refused, not rewritten, when it is not in normal form: what an agent stored must be found under what it sent. */
export const KeyField = lazy(() =>
  plain(
    z
      .string({ error: notTextError })
      .trim()
      .min(1, { error: 'is missing or blank; send a short, stable name such as preferences/editor', abort: true })
      .refine((key) => fitsBytes(key, KEY_BYTES), {
        error: `is longer than ${KEY_BYTES} bytes; shorten it and put the rest into the value`,
        abort: true,
      }),
  )
    .refine((key) => !reservedKey(key), {
      error: `begins with ${RESERVED_KEY_PREFIXES.join(' or ')}, which the engine keeps; choose another`,
    })
    .describe(
      `Stable name of the fact, 1 to ${KEY_BYTES} bytes, without control or invisible characters. Slashes make a hierarchy: preferences/editor.`,
    ),
);

/** A lone surrogate has no UTF-8: stored and read again it would be another text. */
export const FactValue = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    .min(1, { error: 'is missing or blank; send the text to remember', abort: true })
    .refine((value) => fitsBytes(value, VALUE_BYTES), {
      error: `is longer than ${VALUE_BYTES / 1024} KiB; keep the essence here and the rest in a file`,
      abort: true,
    })
    .refine((value) => !loneSurrogate.test(value), { error: 'holds half of a surrogate pair; send well-formed Unicode' })
    .describe(
      `The fact itself: prose, JSON or a snippet, 1 byte to ${VALUE_BYTES / 1024} KiB. Never a password, token or other secret.`,
    ),
);

const categoryShape = 'must have 1 to 64 of a-z, 0-9, "_", "." and "-", beginning with a letter or digit; choose a simpler one';

/** Folding comes first, so that no other spelling of an engine's category passes for a new one. */
export const CategoryField = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    // At most two UTF-16 units fold to one of the 64 characters; what is longer cannot fit and is not folded.
    .refine((category) => category.length <= 2 * 64, { error: categoryShape, abort: true })
    .transform(foldCase)
    .pipe(
      z
        .string()
        .regex(CATEGORY.pattern, { error: categoryShape, abort: true })
        .refine((category) => !RESERVED_CATEGORIES.has(category), { error: 'belongs to the engine; choose another' }),
    )
    .describe(
      `Group of the fact, such as preferences or decisions; kept in lower case. Not ${[...RESERVED_CATEGORIES].join(', ')}: the engine writes those.`,
    ),
);

const tagLength = `must have 1 to ${TAGS.characters} characters; shorten it or leave it out`;

const Tag = lazy(() =>
  plain(
    z
      .string({ error: notTextError })
      .trim()
      .min(1, { error: tagLength, abort: true })
      // At most two units each: what is longer is refused without being counted.
      .refine((tag) => tag.length <= 2 * TAGS.characters && Array.from(tag).length <= TAGS.characters, {
        error: tagLength,
        abort: true,
      }),
  ),
);

export const TagsField = lazy(() =>
  z
    .array(Tag(), { error: 'must be a list of texts; send a JSON array' })
    .max(TAGS.max, { error: `must be at most ${TAGS.max}; keep those you would search for`, abort: true })
    .transform((tags) => [...new Set(tags)])
    .describe(`Words to find the fact by, at most ${TAGS.max} of 1 to ${TAGS.characters} characters; duplicates are dropped.`),
);

const lifetimeBounds = `must be 0 or a whole number of seconds from ${TTL.min} to ${TTL.max}; send it as a JSON number`;

/** Checked before any arithmetic: a number that overflows on its way to a date would be a lifetime nobody asked for. */
export const LifetimeField = lazy(() =>
  z
    .int({ error: lifetimeBounds })
    .min(0, { error: lifetimeBounds })
    .max(TTL.max, { error: lifetimeBounds })
    .refine((seconds) => seconds === 0 || seconds >= TTL.min, { error: lifetimeBounds })
    .transform((seconds) => seconds || TTL.default)
    .describe(
      `Seconds until the fact goes, from now: ${TTL.min} (an hour) to ${TTL.max} (a year). 0 means ${TTL.default} (90 days).`,
    ),
);

/** Looking for a category under the spelling one stored it with must find it. */
export const CategoryFilter = lazy(() =>
  z
    .string({ error: notTextError })
    .trim()
    .refine((category) => category.length <= 2 * 64, { error: categoryShape, abort: true })
    .transform(foldCase)
    .describe('Only this category.'),
);

export const PageCursor = lazy(() =>
  z
    .string({ error: notTextError })
    .max(1024, { error: 'is not one of ours; send next_cursor as you got it' })
    .describe('next_cursor of the page before.'),
);
