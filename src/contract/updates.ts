import * as z from 'zod';
import { lazy, noInput, notTextError, type SchemaOutput } from './schema.ts';

const NUMBER = String.raw`(?:0|[1-9]\d{0,8})`;
const IDENTIFIERS = String.raw`[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*`;

/** Matches a Semantic Versioning version. Captures its three numbers and its pre-release identifiers. */
export const VERSION = new RegExp(String.raw`^(${NUMBER})\.(${NUMBER})\.(${NUMBER})(?:-(${IDENTIFIERS}))?(?:\+${IDENTIFIERS})?$`);

const Version = lazy(() =>
  z
    .string({ error: notTextError })
    .max(64, { error: 'is longer than 64 characters; shorten it' })
    .regex(VERSION, { error: 'must be a version; write it as 1.2.3' }),
);

/** An HTTPS URL from the update server. This program shows the URL but never opens it. */
const Url = lazy(() =>
  z
    .string({ error: notTextError })
    .max(2048, { error: 'is longer than 2,048 characters; shorten it' })
    .regex(/^https:\/\/[!-~]+$/, { error: 'must begin with https:// and contain no spaces; correct it' }),
);

/** The response of the update server. Fields that are not listed here are ignored. */
export const Release = lazy(() => z.object({ version: Version(), url: Url() }));
export type Release = SchemaOutput<typeof Release>;

export const CheckForUpdatesInput = lazy(() =>
  noInput(
    'Check for updates',
    'Asks the update server for the newest version of Helmdeck Memory. Does not download or install anything.',
  ),
);

export const UpdateReport = lazy(() =>
  z.object({
    version: z.string().describe('The version of Helmdeck Memory that is running.'),
    newer: z
      .object({
        version: Version().describe('Version number.'),
        url: Url().describe('URL of the page that describes the newest version. Helmdeck Memory never opens this URL.'),
      })
      .exactOptional()
      .describe('The newest version. Absent if the running version is the newest.'),
  }),
);
export type UpdateReport = SchemaOutput<typeof UpdateReport>;
