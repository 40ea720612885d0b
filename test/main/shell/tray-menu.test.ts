import { describe, expect, test } from 'vitest';
import { trayIconOf, type TrayAction, trayMenu, type TrayState } from '../../../src/main/shell/tray-menu.ts';

const on: TrayState = {
  listening: { at: 'listening', url: 'http://127.0.0.1:7345' },
  key: { at: 'ok', source: 'the keychain' },
  file: { at: 'open' },
  embeddings: { at: 'off' },
  startsAtLogin: false,
  startsHidden: false,
  shortcut: undefined,
  wiped: [],
};
const locked = { at: 'locked', why: 'you locked it', remedy: 'unlock it' } as const;
const taken = { at: 'failed', why: 'it is taken; end it' } as const;
const broken = { at: 'failed', why: 'the disk is full', remedy: 'make room' } as const;

const offers = (state: TrayState): (TrayAction | undefined)[] =>
  trayMenu(state).flatMap((item) => (item === 'line' || item.does === undefined ? [] : [item.does]));
const says = (state: TrayState): string => {
  const [first] = trayMenu(state);
  return first === undefined || first === 'line' ? '' : first.label;
};

describe('the icon and its menu (R-DESK-03)', () => {
  test.each<[string, Partial<TrayState>, ReturnType<typeof trayIconOf>, string, TrayAction[]]>([
    ['on', {}, 'on', 'Listening on 127.0.0.1:7345.', ['open', 'copy-address', 'pause', 'lock']],
    ['paused', { listening: { at: 'paused' } }, 'paused', 'Paused. Agents cannot use this memory.', ['open', 'resume', 'lock']],
    [
      'locked',
      { key: locked },
      'locked',
      'Locked. Agents cannot read or write this memory.',
      ['open', 'copy-address', 'pause', 'unlock'],
    ],
    ['a taken port', { listening: taken }, 'needs-you', "Agents can't connect: it is taken; end it", ['open', 'resume', 'lock']],
    [
      'a key of another memory',
      { key: { at: 'mismatch', why: 'w', remedy: 'r' } },
      'needs-you',
      'The key is not available (mismatch). Open the window to see what to do.',
      ['open', 'copy-address', 'pause'],
    ],
    [
      'no key',
      { key: { at: 'ephemeral', remedy: 'r' } },
      'needs-you',
      'Listening on 127.0.0.1:7345. Facts are lost when Helmdeck Memory quits.',
      ['open', 'copy-address', 'pause'],
    ],
    [
      'a broken file',
      { file: broken },
      'needs-you',
      'The memory cannot be used: the disk is full',
      ['open', 'copy-address', 'pause', 'lock'],
    ],
    [
      'a wiped entry (R-DESK-44)',
      { wiped: ['Codex'] },
      'needs-you',
      'Listening on 127.0.0.1:7345. Codex is no longer connected. Open the window to reconnect.',
      ['open', 'copy-address', 'pause', 'lock'],
    ],
    [
      'two of them, paused',
      { wiped: ['Codex', 'Cursor'], listening: { at: 'paused' } },
      'needs-you',
      'Paused. Agents cannot use this memory. 2 agents are no longer connected. Open the window to reconnect.',
      ['open', 'resume', 'lock'],
    ],
  ])('%s', (_what, changes, icon, line, does) => {
    const state = { ...on, ...changes };
    expect(trayIconOf(state)).toBe(icon);
    expect(says(state)).toBe(line);
    expect(offers(state)).toEqual([...does, 'toggle-embeddings', 'toggle-login', 'toggle-hidden', 'quit']);
  });

  test('the most serious state is shown', () => {
    expect(says({ ...on, file: broken, key: locked, listening: taken })).toMatch(/^The memory cannot/);
    expect(says({ ...on, key: locked, listening: taken })).toMatch(/^Locked/);
    expect(says({ ...on, key: locked, wiped: ['Codex'] })).toMatch(/^Locked/);
    expect(trayIconOf({ ...on, key: locked, wiped: ['Codex'] })).toBe('locked');
  });

  test('the start at login has two settings, if the system supports it (R-DESK-09)', () => {
    const checks = trayMenu({ ...on, startsAtLogin: true }).filter((item) => item !== 'line' && item.checked !== undefined);
    expect(checks.slice(1)).toMatchObject([{ checked: true }, { checked: false }]);
    expect(offers({ ...on, startsAtLogin: undefined })).not.toContain('toggle-login');
  });

  test.each<[TrayState['embeddings'], string, boolean]>([
    [{ at: 'off' }, 'Embeddings', false],
    [{ at: 'starting' }, 'Embeddings (starting)', true],
    [{ at: 'unapproved', changed: false, remedy: 'r' }, 'Embeddings (open the window to continue)', true],
    [{ at: 'pulling', model: 'm', done: 0, of: 0 }, 'Embeddings (downloading the model)', true],
    [{ at: 'pulling', model: 'm', done: 30, of: 90 }, 'Embeddings (downloading the model, 33 %)', true],
    [{ at: 'ready', model: 'm', whose: 'own' }, 'Embeddings', true],
    [{ at: 'failed', trouble: 'crashed', why: 'w', remedy: 'r' }, 'Embeddings (failed, open the window for details)', true],
  ])('the item for embeddings shows their state: %j', (embeddings, label, checked) => {
    expect(trayMenu({ ...on, embeddings })).toContainEqual({ label, does: 'toggle-embeddings', checked });
  });
});

test('the menu shows the shortcut, and whether it is available (R-DESK-16)', () => {
  const labels = (shortcut: TrayState['shortcut']) =>
    trayMenu({ ...on, shortcut }).flatMap((item) => (item === 'line' || !item.label.startsWith('Shortcut') ? [] : [item.label]));
  expect(labels(undefined)).toEqual([]);
  expect(labels({ keys: 'Ctrl+Shift+M', works: true })).toEqual(['Shortcut: Ctrl+Shift+M']);
  expect(labels({ keys: 'Ctrl+Shift+M', works: false })).toEqual(['Shortcut Ctrl+Shift+M Is Not Available']);
});
