import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { accentStyle } from '../../../src/main/shell/accent.ts';

const THEME = readFileSync('src/renderer/src/theme.css', 'utf8');

/** The values of a variable in light and dark mode. */
function pairOf(style: string, name: string): { light: string; dark: string } {
  const [, light = '', dark = ''] = new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(style) ?? [];
  return { light, dark };
}

/** An independent implementation of the WCAG 2.2 formula. */
function contrast(one: string, other: string): number {
  const luminance = (hex: string): number => {
    const linear = (at: number): number => {
      const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5);
  };
  const [most, least] = [Math.max(luminance(one), luminance(other)), Math.min(luminance(one), luminance(other))];
  return (most + 0.05) / (least + 0.05);
}

const STEPS = ['00', '33', '66', '99', 'cc', 'ff'];
const COLOURS = STEPS.flatMap((red) => STEPS.flatMap((green) => STEPS.map((blue) => `${red}${green}${blue}`)));

describe("the system's accent colour (R-DESK-43)", () => {
  test.each(['light', 'dark'] as const)('keeps every text readable in %s mode', (mode) => {
    const unreadable = COLOURS.flatMap((chosen) => {
      const style = accentStyle(chosen);
      const [accent, onAccent, selection] = ['accent', 'on-accent', 'selection'].map((name) => pairOf(style, name)[mode]) as [
        string,
        string,
        string,
      ];
      const on = (ground: string, names: string[]) => names.map((name) => [pairOf(THEME, name)[mode], ground] as const);
      const [page, sidebar] = [pairOf(THEME, 'page')[mode], pairOf(THEME, 'sidebar')[mode]];
      return [
        ...[page, sidebar, selection].map((ground) => [accent, ground] as const),
        [onAccent, accent] as const,
        ...on(selection, ['text', 'quiet', 'soon', 'danger']),
      ]
        .filter(([text, ground]) => !(contrast(text, ground) >= 4.5))
        .map(([text, ground]) => `${chosen}: ${text} on ${ground}`);
    });
    expect(unreadable).toEqual([]);
  });

  test('is not adjusted if it is readable', () => {
    expect(pairOf(accentStyle('0057b7ff'), 'accent').light).toBe('#0057b7');
    expect(pairOf(accentStyle('#ffb3ff'), 'accent').dark).toBe('#ffb3ff');
  });

  test.each(['', 'false', 'red', '12345', 'url(x)', 'ffffff;}*{display:none', '#1234567890'])(
    'is not used if the system reports %j',
    (reported) => {
      expect(accentStyle(reported)).toBe('');
    },
  );
});
