import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, notTextError } from './text.ts';

const SETTING_LENGTH = 200;

const count = (what: string) => z.int().min(0).describe(what);
const share = (of: string) =>
  z.object({ used: count('How much there is.'), most: count('How much there may be.') }).describe(`${of} of this subject.`);

export const SettingsInput = lazy(() =>
  inputObject(
    {},
    {
      title: 'Show settings',
      description: 'What is set and where, where the memory lies and is reached, and how much of its quota a subject uses.',
    },
  ),
);

export const SettingRow = lazy(() =>
  z.object({
    name: z.string().describe('Its one name, in the environment as in the configuration file.'),
    from: z.enum(['environment', 'file', 'nowhere']).describe('Where it is set; nowhere: it is as usual.'),
    value: z.string().exactOptional().describe('What it is set to; absent while it is not set, and for what is secret.'),
    usual: z.string().exactOptional().describe('What holds while it is not set.'),
    changeable: z.boolean().describe('It can be changed here, where the environment does not set it.'),
    choices: z.array(z.string()).exactOptional().describe('Words that it can be, where it is one of a few.'),
    next: z.string().exactOptional().describe('What was set here since, and holds from the next start.'),
  }),
);
export type SettingRow = SchemaOutput<typeof SettingRow>;

/** Settings are read at a start, from the environment and from the owner's own file. */
export const SettingsReport = lazy(() =>
  z.object({
    folder: z.string().describe('The data folder.'),
    command: z.string().describe('What starts the command line of this program, in any folder.'),
    address: z.string().describe('Where agents reach the memory, as it is set.'),
    file: z.string().exactOptional().describe('The configuration file that was read; absent when there is none.'),
    settings: z.array(SettingRow()).describe('Every setting there is.'),
    updates: z
      .string()
      .exactOptional()
      .describe('Who is asked for a newer version when its owner wants to know; absent where this build asks nobody.'),
    quota: z
      .object({ facts: share('Facts'), bytes: share('Bytes, earlier versions included,') })
      .describe('What the subject may hold.'),
  }),
);
export type SettingsReport = SchemaOutput<typeof SettingsReport>;

export const ChangeSettingInput = lazy(() =>
  inputObject(
    {
      name: z.string({ error: notTextError }).describe('One of the settings that are changeable.'),
      value: z
        .string({ error: notTextError })
        .max(SETTING_LENGTH, `must be at most ${SETTING_LENGTH} characters; send a shorter one`)
        .exactOptional()
        .describe('As the environment would hold it; without it the setting is as usual again.'),
    },
    {
      title: 'Change a setting',
      description:
        'Writes a setting into the configuration file, from where the next start reads it. What the environment sets is changed there.',
    },
  ),
);

/** What the program was started with, as its owner may see it. */
export type SettingsSnapshot = Omit<SettingsReport, 'quota' | 'updates'>;
