import * as z from 'zod';
import { count, inputObject, lazy, noInput, notTextError, type SchemaOutput } from './schema.ts';

const SETTING_LENGTH = 200;

const quota = (description: string) =>
  z.object({ used: count('Amount in use.'), most: count('Maximum amount.') }).describe(description);

export const SettingsInput = lazy(() =>
  noInput(
    'Show settings',
    'Shows every setting and where it is set, the data folder, the address, and how much of its quota the subject uses.',
  ),
);

export const SettingRow = lazy(() =>
  z.object({
    name: z.string().describe('Name of the setting, in the environment and in the configuration file.'),
    from: z.enum(['environment', 'file', 'nowhere']).describe('Where the setting is set. nowhere: the default applies.'),
    value: z.string().exactOptional().describe('Current value. Absent if the setting is not set or is secret.'),
    usual: z.string().exactOptional().describe('Default value.'),
    changeable: z.boolean().describe('Whether the setting can be changed here, unless the environment sets it.'),
    choices: z.array(z.string()).exactOptional().describe('Allowed values, if there are only a few.'),
    next: z.string().exactOptional().describe('New value that takes effect at the next start.'),
  }),
);
export type SettingRow = SchemaOutput<typeof SettingRow>;

/** Settings are read once, at the start, from the environment and the configuration file. */
export const SettingsReport = lazy(() =>
  z.object({
    folder: z.string().describe('The data folder.'),
    command: z.string().describe('Command that starts the command line from any folder.'),
    address: z.string().describe('The configured address for agents.'),
    file: z.string().exactOptional().describe('Path of the configuration file. Absent if there is none.'),
    settings: z.array(SettingRow()).describe('All settings.'),
    updates: z
      .string()
      .exactOptional()
      .describe(
        'Host of the update server, contacted only when the owner checks for updates. Absent if this build cannot check.',
      ),
    quota: z
      .object({
        facts: quota('Number of facts of this subject.'),
        bytes: quota('Bytes of this subject, including earlier versions.'),
      })
      .describe('Quota of the subject.'),
  }),
);
export type SettingsReport = SchemaOutput<typeof SettingsReport>;

export const ChangeSettingInput = lazy(() =>
  inputObject(
    {
      name: z.string({ error: notTextError }).describe('Name of a changeable setting.'),
      value: z
        .string({ error: notTextError })
        .max(SETTING_LENGTH, `must have at most ${SETTING_LENGTH} characters; send a shorter value`)
        .exactOptional()
        .describe('New value, written as in the environment. Absent: restores the default.'),
    },
    {
      title: 'Change a setting',
      description:
        'Writes a setting to the configuration file. It takes effect at the next start. A setting in the environment can only be changed there.',
    },
  ),
);

/** The settings that the program was started with. */
export type SettingsSnapshot = Omit<SettingsReport, 'quota' | 'updates'>;
