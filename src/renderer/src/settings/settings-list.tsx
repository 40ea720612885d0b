import { useState } from 'react';
import type { SettingRow, SettingsReport } from '../../../contract/settings.ts';
import { useMemory } from '../memory-context.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Labelled } from '../ui/labelled.tsx';
import { Section } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';
import { useFreshLook } from '../watched.ts';
import { sizeOf } from './size.ts';

const FROM = { environment: 'in the environment', file: 'in the file', nowhere: '' } as const;

interface Said {
  readonly label: string;
  readonly hint: string;
  /** How a number is told, where it is more than a number. */
  readonly amount?: (value: number) => string;
}

const inDigits = (count: number): string => count.toLocaleString();

/** What those are called that an owner may want to change, and how to fill them in. */
const SAID: Readonly<Record<string, Said>> = {
  HELMDECK_ADDR: {
    label: 'Address and port',
    hint: '127.0.0.1, localhost or [::1] with a port. Agents must be told of a new one.',
  },
  HELMDECK_QUOTA_FACTS: { label: 'Facts in a memory, at most', hint: 'A whole number.', amount: inDigits },
  HELMDECK_QUOTA_BYTES: {
    label: 'Size of a memory, at most',
    hint: 'In bytes, a whole number; earlier versions count.',
    amount: sizeOf,
  },
  HELMDECK_WRITES_PER_MINUTE: { label: 'Writes of an agent in a minute, at most', hint: 'A whole number.', amount: inDigits },
  HELMDECK_SECRETS: {
    label: 'A value that looks like a credential',
    hint: 'refuse: it is not stored. warn: it is, and the agent is told.',
  },
  HELMDECK_LOCK_AFTER: {
    label: 'Minutes away after which it locks',
    hint: 'From 1 to 1440. Agents read and write nothing while it is locked.',
  },
  HELMDECK_SHORTCUT: { label: 'Keys that open the window', hint: 'On the desktop, from anywhere: such as Ctrl+Shift+M.' },
  HELMDECK_OPENCLAW_QMD: {
    label: 'OpenClaw: search through mcporter',
    hint: 'Holds the next time OpenClaw is connected. Its own memory search goes through our plugin either way.',
  },
};

/** Settings are read at a start: what can be changed here is written to the file, the rest is shown with the name by which it is set. */
export function SettingsList({ settings: { folder, file, settings } }: { settings: SettingsReport }) {
  const [changing, setChanging] = useState<SettingRow>();
  const said = settings.filter(({ name }) => SAID[name]);
  const [set, unset] = [true, false].map((isSet) =>
    settings.filter(({ name, from, usual }) => !SAID[name] && (from !== 'nowhere' || usual !== undefined) === isSet),
  ) as [SettingRow[], SettingRow[]];
  return (
    <>
      <Section title="Choices">
        <p className="quiet">
          What is changed here is kept in the configuration file, and holds from the next start of the program.
        </p>
        <ul className="plain">
          {said.map((row) => (
            <li key={row.name} className="line">
              <span>
                {SAID[row.name]?.label} <code className="quiet">{row.name}</code>
              </span>
              <span>
                <Value {...row} />{' '}
                {row.changeable && (
                  <button type="button" className="opener" aria-label={`Change ${row.name}`} onClick={() => setChanging(row)}>
                    Change…
                  </button>
                )}
              </span>
            </li>
          ))}
        </ul>
      </Section>
      <Section title="What else is set">
        <p className="quiet">
          The program reads its settings when it starts: from its environment, and from{' '}
          {file === undefined ? 'config.json in the data folder' : <span className="address">{file}</span>}. These decide about
          keys, code and other machines, so they are changed there alone.
        </p>
        <dl className="pairs">
          <dt>Data folder</dt>
          <dd className="address">{folder}</dd>
        </dl>
        <ul className="plain">
          {set.map((row) => (
            <li key={row.name} className="line">
              <code>{row.name}</code>
              <Value {...row} />
            </li>
          ))}
        </ul>
        <details>
          <summary>Not set: {unset.length}</summary>
          <ul className="plain">
            {unset.map(({ name }) => (
              <li key={name}>
                <code>{name}</code>
              </li>
            ))}
          </ul>
        </details>
      </Section>
      {changing && <ChangeSetting row={changing} close={() => setChanging(undefined)} />}
    </>
  );
}

function Value({ name, from, value, usual, next }: SettingRow) {
  const told = (text: string): string => (/^\d+$/.test(text) ? SAID[name]?.amount?.(Number(text)) : undefined) ?? text;
  return (
    <span className={from === 'nowhere' ? 'quiet' : 'small'}>
      {from === 'nowhere' ? told(usual ?? 'not set') : <bdi>{told(value ?? 'set, and secret')}</bdi>}
      {from !== 'nowhere' && <span className="quiet"> {FROM[from]}</span>}
      {next !== undefined && (
        <>
          , from the next start <bdi>{told(next)}</bdi>
        </>
      )}
    </span>
  );
}

function ChangeSetting({ row: { name, value, usual, next, choices }, close }: { row: SettingRow; close: () => void }) {
  const { ask } = useMemory();
  const { say } = useToast();
  const lookAgain = useFreshLook();
  const [typed, setTyped] = useState(next === usual ? '' : (next ?? value ?? ''));
  const change = async (): Promise<void> => {
    await ask('changeSetting', typed === '' ? { name } : { name, value: typed });
    say({ text: 'Kept in the configuration file. It holds from the next start.' });
    lookAgain();
  };
  const { label = name, hint = '' } = SAID[name] ?? {};
  const field = { value: typed, onChange: ({ target }: { target: { value: string } }) => setTyped(target.value) };
  return (
    <Confirm title={label} act="Keep" harmless labels={{ value: name }} run={change} close={close}>
      <div className="fields">
        <Labelled label={name} hint={`${hint} Left empty it is as usual${usual === undefined ? '' : `: ${usual}`}.`}>
          {(about) =>
            choices ? (
              <select {...about} {...field}>
                <option value="">as usual</option>
                {choices.map((choice) => (
                  <option key={choice}>{choice}</option>
                ))}
              </select>
            ) : (
              <input {...about} {...field} autoComplete="off" spellCheck={false} />
            )
          }
        </Labelled>
      </div>
    </Confirm>
  );
}
