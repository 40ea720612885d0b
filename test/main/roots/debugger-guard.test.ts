import { describe, expect, test } from 'vitest';
import { refuseRemoteControl } from '../../../src/main/roots/debugger-guard.ts';

const startedWith = (isPackaged: boolean, ...switches: readonly string[]) => ({
  isPackaged,
  commandLine: { hasSwitch: (name: string) => switches.includes(name) },
});

describe("Chromium's remote debugging (R-DESK-13)", () => {
  test.each(['remote-debugging-port', 'remote-debugging-pipe'])('stops the start of a release: --%s', (name) => {
    expect(() => refuseRemoteControl(startedWith(true, name))).toThrow(`The switch --${name} `);
  });

  test('is available in a checkout, and a release without it starts', () => {
    expect(() => refuseRemoteControl(startedWith(false, 'remote-debugging-port'))).not.toThrow();
    expect(() => refuseRemoteControl(startedWith(true, 'no-sandbox'))).not.toThrow();
  });
});
