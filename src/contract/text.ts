import * as z from 'zod';
import { lazy } from './lazy.ts';

const utf8 = new TextEncoder();

/** Every UTF-16 unit takes a byte or more, so a text that is far too long is refused without being encoded. */
export const fitsBytes = (text: string, most: number): boolean => text.length <= most && utf8.encode(text).length <= most;

/**
 * Compatibility forms and letter case set aside, as Unicode's full case folding does: ß becomes ss. Up and down again,
 * because lower case alone keeps ß; the dotless ı, which has no upper case but I, becomes i.
 */
export const foldCase = (text: string): string =>
  text.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');

/**
 * Text that somebody else wrote, as data on one line: without line breaks and control, format and bidirectional characters, it
 * cannot pass for words of ours.
 */
export function oneLine(text: string, most: number): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  if (line.length <= most) return line;
  const cut = line.slice(0, most - 1);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`;
}

/** What a reader would take the text for: accents, blanks and marks that leave no ink set aside as well. */
export const visibleText = (text: string): string =>
  foldCase(text.normalize('NFKD').replace(/[\s\p{M}\p{Default_Ignorable_Code_Point}]/gu, ''));

/**
 * Messages in the contract leave out their subject: `explain` puts the field's path before them.
 * So a schema reads the same wherever it is used, and every refusal names the field.
 */
export const notTextError = ({ input }: { readonly input?: unknown }): string =>
  input === undefined ? 'is missing; send it as text' : 'must be text; send it as a JSON string';

interface About {
  title: string;
  description: string;
}

/** What may be asked. An unknown field is refused, because dropping it would answer something that was not asked. */
export const inputObject = <Shape extends z.core.$ZodLooseShape>(shape: Shape, about: About) => {
  const fields = Object.keys(shape).join(', ');
  return z
    .strictObject(shape, {
      error: ({ code }) =>
        code === 'unrecognized_keys'
          ? `has a field that is not known here; ${fields === '' ? 'send none' : `send only ${fields}`}`
          : `must be a JSON object; send it ${fields === '' ? 'empty' : `with ${fields}`}`,
    })
    .meta({ ...about });
};

export const wholeNumber = (least: number, most: number) => {
  const error = `must be a whole number from ${least} to ${most}; send it as a number`;
  return z.int({ error }).min(least, { error }).max(most, { error });
};

export const flag = () => z.boolean({ error: 'must be true or false; send it without quotes' });

const Instant = lazy(() => z.iso.datetime());

/** RFC 3339 in UTC. A plain string with a format: the pattern of `z.iso.datetime` would swell every generated schema. */
export const Time = lazy(() =>
  z
    .string({ error: notTextError })
    .refine((text) => Instant().safeParse(text).success, { error: 'must be a UTC time such as 2026-11-18T09:00:00Z; send it so' })
    .meta({ format: 'date-time' }),
);
