/** Red, green and blue, from 0 to 255. */
type Colour = readonly [number, number, number];

/** Background and text colours. Must be the same as in the window's style sheet. */
const SURFACES = {
  light: { page: '#ffffff', sidebar: '#f5f5f6', quiet: '#63636a', tint: 0.12, towards: [0, 0, 0] },
  dark: { page: '#1d1d1f', sidebar: '#232326', quiet: '#a3a3aa', tint: 0.22, towards: [255, 255, 255] },
} as const;

/** Minimum contrast ratio of text: the ratio that WCAG 2.2 requires, plus a margin for rounding. */
const MIN_CONTRAST = 4.55;
const STEP = 0.02;

/**
 * Returns a style sheet that applies the system's accent colour to the window. Adjusts the colour until text is readable. Returns
 * an empty text if the value is not a colour.
 */
export function accentStyle(chosen: string): string {
  if (!/^#?[0-9a-f]{6}([0-9a-f]{2})?$/i.test(chosen)) return '';
  const colour = colourOf(chosen);
  const [light, dark] = [shadesOf(colour, 'light'), shadesOf(colour, 'dark')];
  return `:root:root {
  --accent: light-dark(${light.accent}, ${dark.accent});
  --on-accent: light-dark(${SURFACES.light.page}, ${SURFACES.dark.page});
  --selection: light-dark(${light.selection}, ${dark.selection});
}
`;
}

function shadesOf(chosen: Colour, mode: keyof typeof SURFACES): { readonly accent: string; readonly selection: string } {
  const { page, sidebar, quiet, tint, towards } = SURFACES[mode];
  const tinted = (share: number): Colour => mixed(colourOf(page), chosen, share);
  let share: number = tint;
  while (share > 0 && contrast(colourOf(quiet), tinted(share)) < MIN_CONTRAST) share -= STEP;
  const selection = tinted(Math.max(0, share));
  const backgrounds = [colourOf(page), colourOf(sidebar), selection];
  let moved = 0;
  const accent = (): Colour => mixed(chosen, towards, moved);
  while (moved < 1 && backgrounds.some((background) => contrast(accent(), background) < MIN_CONTRAST)) moved += STEP;
  return { accent: toHex(accent()), selection: toHex(selection) };
}

const colourOf = (hex: string): Colour => {
  const digits = hex.replace('#', '');
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
  return [red, green, blue];
};

const toHex = (colour: Colour): string => `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`;

function mixed(one: Colour, other: Colour, share: number): Colour {
  const part = (at: 0 | 1 | 2): number => Math.round(one[at] + (other[at] - one[at]) * Math.min(1, share));
  return [part(0), part(1), part(2)];
}

/** Returns the contrast ratio of two colours, as defined by WCAG 2.2. */
function contrast(one: Colour, other: Colour): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: Colour): number {
  const [red = 0, green = 0, blue = 0] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
