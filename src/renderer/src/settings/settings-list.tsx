import { useState } from 'react';
import type { SettingRow, SettingsReport } from '../../../contract/settings.ts';
import { useMemory } from '../memory-context.tsx';
import { useRefresh } from '../polling.ts';
import { Button } from '../ui/button.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Field } from '../ui/field.tsx';
import { Section } from '../ui/page.tsx';
import { useToast } from '../ui/toast.tsx';
import { sizeOf } from './size.ts';

const ORIGINS = { environment: 'from the environment', file: 'from the file', nowhere: '' } as const;

/** Shows the settings that were read at startup. Common settings can be changed here; other settings are only listed. */
export function SettingsList({ settings: { folder, file, settings } }: { settings: SettingsReport }) {
  const [changing, setChanging] = useState<SettingRow>();
  const described = settings.filter(({ label }) => label !== undefined);
  const others = settings.filter(({ label }) => label === undefined);
  const isSet = ({ from, usual }: SettingRow): boolean => from !== 'nowhere' || usual !== undefined;
  const unset = others.filter((row) => !isSet(row));
  return (
    <>
      <Section title="Preferences">
        <p className="quiet">Changes are saved in the configuration file. Most of them take effect after a restart.</p>
        <ul className="plain">
          {described.map((row) => (
            <li key={row.name} className="line">
              <span>
                {row.label} <code className="quiet">{row.name}</code>
              </span>
              <span>
                <Value {...row} />{' '}
                {row.changeable && (
                  <Button label="Change…" look="link" aria-label={`Change ${row.name}`} onClick={() => setChanging(row)} />
                )}
              </span>
            </li>
          ))}
        </ul>
      </Section>
      <Section title="Other settings">
        <p className="quiet">
          These settings affect keys, code and other computers, so the window cannot change them. Set them in the environment or
          in {file === undefined ? 'config.json in the data folder' : <span className="address">{file}</span>}, and restart the
          program.
        </p>
        <dl className="pairs">
          <dt>Data folder</dt>
          <dd className="address">{folder}</dd>
        </dl>
        <ul className="plain">
          {others.filter(isSet).map((row) => (
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

function Value({ unit, from, value, usual, next }: SettingRow) {
  const formatted = (text: string): string =>
    !/^\d+$/.test(text) ? text : unit === 'bytes' ? sizeOf(Number(text)) : Number(text).toLocaleString();
  return (
    <span className={from === 'nowhere' ? 'quiet' : 'small'}>
      {from === 'nowhere' ? formatted(usual ?? 'not set') : <bdi>{formatted(value ?? 'set (secret)')}</bdi>}
      {from !== 'nowhere' && <span className="quiet"> {ORIGINS[from]}</span>}
      {next !== undefined && (
        <>
          , after restart <bdi>{formatted(next)}</bdi>
        </>
      )}
    </span>
  );
}

function ChangeSetting({
  row: { name, label = name, help, value, usual, next, choices },
  close,
}: {
  row: SettingRow;
  close: () => void;
}) {
  const { call } = useMemory();
  const { showToast } = useToast();
  const refresh = useRefresh();
  const [typed, setTyped] = useState(next === usual ? '' : (next ?? value ?? ''));
  const change = async (): Promise<void> => {
    const changed = await call('changeSetting', typed === '' ? { name } : { name, value: typed });
    // A setting that takes effect immediately has no value that waits for a restart.
    const pending = changed.next !== undefined;
    showToast({ text: pending ? 'Saved. Restart Helmdeck Memory to apply the change.' : 'Saved.' });
    refresh();
  };
  const defaultValue = usual === undefined ? 'default' : `default (${usual})`;
  const field = { value: typed, onChange: ({ target }: { target: { value: string } }) => setTyped(target.value) };
  return (
    <Confirm title={label} button="Save" harmless labels={{ value: name }} run={change} close={close}>
      <div className="fields">
        <Field label={name} hint={`${help} ${choices ? 'Choose Default' : 'Leave the field empty'} to use the ${defaultValue}.`}>
          {(about) =>
            choices ? (
              <select {...about} {...field}>
                <option value="">Default</option>
                {choices.map((choice) => (
                  <option key={choice}>{choice}</option>
                ))}
              </select>
            ) : (
              <input {...about} {...field} autoComplete="off" spellCheck={false} />
            )
          }
        </Field>
      </div>
    </Confirm>
  );
}
