import * as z from 'zod';
import { lazy, noInput, notTextError, type SchemaOutput } from './schema.ts';

const PART = String.raw`(?:0|[1-9]\d{0,8})`;
const MARK = String.raw`[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*`;

/** A version as in Semantic Versioning: three numbers, an optional pre-release and optional build metadata. */
export const VERSION = new RegExp(String.raw`^(${PART})\.(${PART})\.(${PART})(?:-(${MARK}))?(?:\+${MARK})?$`);

const Version = lazy(() =>
  z
    .string({ error: notTextError })
    .max(64, { error: 'is longer than 64 characters; shorten it' })
    .regex(VERSION, { error: 'must be a version; write it as 1.2.3' }),
);

/** The URL is only shown, never opened. */
const Url = lazy(() =>
  z
    .string({ error: notTextError })
    .max(2048, { error: 'is longer than 2,048 characters; shorten it' })
    .regex(/^https:\/\/[!-~]+$/, { error: 'must begin with https:// and contain no spaces; correct it' }),
);

/** The response of the update server. Other fields are ignored. */
export const Release = lazy(() => z.object({ version: Version(), url: Url() }));
export type Release = SchemaOutput<typeof Release>;

export const CheckForUpdatesInput = lazy(() =>
  noInput('Check for updates', 'Asks the update server of this build for the newest version. Downloads and installs nothing.'),
);

export const UpdateReport = lazy(() =>
  z.object({
    version: z.string().describe('The running version.'),
    newer: z
      .object({
        version: Version().describe('The version.'),
        url: Url().describe('Page that describes the newest version. The program never opens it.'),
      })
      .exactOptional()
      .describe('The newest version. Absent if the running version is the newest.'),
  }),
);
export type UpdateReport = SchemaOutput<typeof UpdateReport>;
