import * as z from 'zod';
import { count, inputObject, lazy, noInput, notTextError, type SchemaOutput } from './schema.ts';

const SETTING_LENGTH = 200;

const quota = (description: string) =>
  z
    .object({ used: count('Amount in use, in the unit of the quota.'), most: count('Maximum amount, in the unit of the quota.') })
    .describe(description);

export const SettingsInput = lazy(() =>
  noInput(
    'Show settings',
    'Shows every setting with its value and source, the data folder, the address for agents, and how much of the quota is used.',
  ),
);

export const SettingRow = lazy(() =>
  z.object({
    name: z.string().describe('Name of the setting: the same in the environment and in the configuration file.'),
    label: z
      .string()
      .exactOptional()
      .describe('Name of the setting in the window. Absent for settings that the window cannot change.'),
    help: z.string().describe('Description of the setting.'),
    unit: z.literal('bytes').exactOptional().describe('`bytes` if the value is a number of bytes.'),
    from: z
      .enum(['environment', 'file', 'nowhere'])
      .describe('Where the value comes from: the environment, the configuration file, or `nowhere` if the default applies.'),
    value: z.string().exactOptional().describe('Current value. Absent if the setting is not set, or if the value is secret.'),
    usual: z.string().exactOptional().describe('Default value.'),
    changeable: z
      .boolean()
      .describe(
        'Whether the setting can be changed by Helmdeck Memory. A setting from the environment can be changed only there.',
      ),
    choices: z
      .array(z.string())
      .exactOptional()
      .describe('The allowed values. Absent if the setting accepts any text or number.'),
    next: z
      .string()
      .exactOptional()
      .describe('New value, which takes effect when Helmdeck Memory is restarted. Absent if no change is pending.'),
  }),
);
export type SettingRow = SchemaOutput<typeof SettingRow>;

export const SettingsReport = lazy(() =>
  z.object({
    folder: z.string().describe('The data folder.'),
    command: z.string().describe('Command that runs the Helmdeck Memory command line from any folder.'),
    address: z.string().describe('Address on which Helmdeck Memory accepts connections from agents, as configured.'),
    file: z.string().exactOptional().describe('Path of the configuration file. Absent if there is no such file.'),
    settings: z.array(SettingRow()).describe('All settings.'),
    updates: z
      .string()
      .exactOptional()
      .describe(
        'Host name of the update server. It is contacted only when the owner checks for updates. Absent if this build cannot check for updates.',
      ),
    quota: z
      .object({
        facts: quota('Number of facts in the memory of this subject.'),
        bytes: quota('Bytes in the memory of this subject, including earlier versions of facts.'),
      })
      .describe('How much this subject stores, and how much it is allowed to store.'),
  }),
);
export type SettingsReport = SchemaOutput<typeof SettingsReport>;

export const ChangeSettingInput = lazy(() =>
  inputObject(
    {
      name: z
        .string({ error: notTextError })
        .describe('Name of the setting. It must be one of the settings that can be changed.'),
      value: z
        .string({ error: notTextError })
        .max(SETTING_LENGTH, `must have at most ${SETTING_LENGTH} characters; send a shorter value`)
        .exactOptional()
        .describe('New value, in the same format as in the environment. If absent, the default is restored.'),
    },
    {
      title: 'Change a setting',
      description:
        'Writes a setting to the configuration file. The new value takes effect when Helmdeck Memory is restarted. A setting from the environment can be changed only there.',
    },
  ),
);

/** The settings at startup, without the values that change while the program runs. */
export type SettingsSnapshot = Omit<SettingsReport, 'quota' | 'updates'>;
