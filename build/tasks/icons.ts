import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Paint, png } from './png.ts';

/** `npm run icons` draws the icons: two drawers of a desk. */
const ICONS = join(import.meta.dirname, '../icons');

const BLUE: Paint = [0.184, 0.384, 0.8, 1];
const WHITE: Paint = [1, 1, 1, 1];
const BLACK: Paint = [0, 0, 0, 1];
const AMBER: Paint = [0.878, 0.537, 0.086, 1];

type Box = readonly [left: number, top: number, right: number, bottom: number];

function within([left, top, right, bottom]: Box, radius: number, x: number, y: number): boolean {
  if (x < left || x > right || y < top || y > bottom) return false;
  const dx = Math.max(left + radius - x, x - (right - radius), 0);
  const dy = Math.max(top + radius - y, y - (bottom - radius), 0);
  return dx * dx + dy * dy <= radius * radius;
}

/** Two drawers. The upper one has a handle in front of its paper. */
function drawers(x: number, y: number): 'front' | 'gap' | undefined {
  const body: Box = [0.14, 0.16, 0.86, 0.84];
  if (!within(body, 0.1, x, y)) return undefined;
  if (Math.abs(y - 0.5) < 0.03) return 'gap';
  const handle = (middle: number): boolean => within([0.36, middle - 0.045, 0.64, middle + 0.045], 0.045, x, y);
  return handle(0.33) || handle(0.67) ? 'gap' : 'front';
}

function application(x: number, y: number): Paint | undefined {
  if (!within([0.04, 0.04, 0.96, 0.96], 0.21, x, y)) return undefined;
  const inner = drawers(0.5 + (x - 0.5) * 1.28, 0.5 + (y - 0.5) * 1.28);
  return inner === 'front' ? WHITE : BLUE;
}

type TrayState = 'on' | 'paused' | 'locked' | 'needs-you';

/** The states differ in shape, because menu bars remove colour: a bar, a keyhole, a dot. */
function tray(state: TrayState, ink: Paint, dot: Paint) {
  return (x: number, y: number): Paint | undefined => {
    if (state === 'needs-you') {
      const far = Math.hypot(x - 0.8, y - 0.2);
      if (far < 0.17) return dot;
      if (far < 0.23) return undefined;
    }
    if (state === 'paused') {
      const bar = Math.abs(x + y - 1);
      if (bar < 0.05) return ink;
      if (bar < 0.13) return undefined;
    }
    if (state === 'locked') {
      const hole = Math.hypot(x - 0.5, y - 0.44) < 0.11 || (Math.abs(x - 0.5) < 0.05 && y > 0.44 && y < 0.68);
      return within([0.14, 0.16, 0.86, 0.84], 0.1, x, y) && !hole ? ink : undefined;
    }
    return drawers(x, y) === 'front' ? ink : undefined;
  };
}

mkdirSync(ICONS, { recursive: true });
for (const size of [16, 24, 32, 48, 64, 128, 256, 512]) writeFileSync(join(ICONS, `${size}x${size}.png`), png(size, application));
writeFileSync(join(ICONS, 'icon.png'), png(1024, application));
for (const state of ['on', 'paused', 'locked', 'needs-you'] as const) {
  for (const [scale, suffix] of [
    [1, ''],
    [2, '@2x'],
  ] as const) {
    writeFileSync(join(ICONS, `tray-${state}Template${suffix}.png`), png(16 * scale, tray(state, BLACK, BLACK)));
    // Linux and Windows panels can be dark or light, and programs cannot tell which. Blue is visible on both.
    writeFileSync(join(ICONS, `tray-${state}${suffix}.png`), png(22 * scale, tray(state, [0.36, 0.55, 0.95, 1], AMBER)));
  }
}
