import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, notTextError } from './text.ts';

const PART = String.raw`(?:0|[1-9]\d{0,8})`;
const MARK = String.raw`[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*`;

/** As Semantic Versioning writes one: three numbers, what it came before, what it was built from. */
export const VERSION = new RegExp(String.raw`^(${PART})\.(${PART})\.(${PART})(?:-(${MARK}))?(?:\+${MARK})?$`);

const Version = lazy(() =>
  z
    .string({ error: notTextError })
    .max(64, { error: 'is longer than 64 characters; shorten it' })
    .regex(VERSION, { error: 'must be a version such as 1.2.3; write it so' }),
);

/** It is shown and never opened, so it must be readable and nothing else. */
const Url = lazy(() =>
  z
    .string({ error: notTextError })
    .max(2048, { error: 'is longer than 2,048 characters; shorten it' })
    .regex(/^https:\/\/[!-~]+$/, { error: 'must begin with https:// and hold no space; write it so' }),
);

/** What is answered where this program asks; further fields mean nothing to it. */
export const Release = lazy(() => z.object({ version: Version(), url: Url() }));
export type Release = SchemaOutput<typeof Release>;

export const CheckForUpdatesInput = lazy(() =>
  inputObject(
    {},
    {
      title: 'Check for updates',
      description:
        'Asks the one place that this build knows which version is the newest. It is asked for nothing else and at no other time, and nothing is fetched from it or installed.',
    },
  ),
);

export const UpdateReport = lazy(() =>
  z.object({
    version: z.string().describe('The version that runs.'),
    newer: z
      .object({
        version: Version().describe('The newest version.'),
        url: Url().describe('Where it is told of; nothing opens it.'),
      })
      .exactOptional()
      .describe('Absent where none is newer than the one that runs.'),
  }),
);
export type UpdateReport = SchemaOutput<typeof UpdateReport>;
