import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isReachable, DesktopState } from '../../../src/main/shell/desktop-state.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const place = { x: 60, y: 70, width: 800, height: 500 };

describe('the settings of the desktop (R-DESK-01)', () => {
  test('are stored in a file that only the owner can read', () => {
    const folder = tempFolder();
    const kept = new DesktopState(folder);
    expect(kept.choices).toEqual({ place: undefined, told: false, startsHidden: false });
    kept.update({ place });
    kept.update({ told: true });
    expect(new DesktopState(folder).choices).toEqual({ place, told: true, startsHidden: false });
    expect(statSync(join(folder, 'desktop.json')).mode & 0o777).toBe(0o600);
  });

  test.each([
    ['nothing', ''],
    ['invalid JSON', '{'],
    ['a list', '[]'],
    ['other types', '{"place": {"x": "1"}, "told": 1, "startsHidden": null}'],
    ['an invalid place', '{"place": {"x": 1, "y": 1, "width": 0, "height": -5}}'],
  ])('have their defaults if the file contains %s', (_what, content) => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'desktop.json'), content);
    expect(new DesktopState(folder).choices).toEqual({ place: undefined, told: false, startsHidden: false });
  });

  test('last until the program ends if the file cannot be written', () => {
    const kept = new DesktopState('/nowhere/at/all');
    kept.update({ told: true });
    expect(kept.choices.told).toBe(true);
  });
});

test.each([
  { where: 'on the only screen', at: place, reachable: true },
  { where: 'on a disconnected screen', at: { ...place, x: 3000 }, reachable: false },
  { where: 'above every screen', at: { ...place, y: -200 }, reachable: false },
  { where: 'with a few pixels at the right edge', at: { ...place, x: 1270 }, reachable: false },
  { where: 'with a few pixels at the lower edge', at: { ...place, y: 790 }, reachable: false },
  { where: 'partly to the left', at: { ...place, x: -400 }, reachable: true },
])('a window $where is reachable: $reachable', ({ at, reachable }) => {
  expect(isReachable(at, [{ x: 0, y: 0, width: 1280, height: 800 }])).toBe(reachable);
});
