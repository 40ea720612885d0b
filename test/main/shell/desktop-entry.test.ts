import { expect, test } from 'vitest';
import { desktopEntry } from '../../../src/main/shell/desktop-entry.ts';

test('an autostart entry quotes special characters in paths (R-DESK-09)', () => {
  const exec = (...words: string[]): string | undefined => /^Exec=(.*)$/m.exec(desktopEntry(words))?.[1];
  expect(exec('/opt/Helmdeck Memory/helmdeck-memory', '--at-login')).toBe('"/opt/Helmdeck Memory/helmdeck-memory" "--at-login"');
  expect(exec('/a$b')).toBe(String.raw`"/a\\$b"`);
  expect(exec('/a\\b')).toBe(String.raw`"/a\\\\b"`);
  expect(exec('/a"b`c')).toBe(String.raw`"/a\\"b\\${'`'}c"`);
  expect(exec('/100%')).toBe('"/100%%"');
});
