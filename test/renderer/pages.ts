import type { Page } from 'playwright-core';
import { accessibilityViolations, type OpenedWindow } from '../support/window.ts';

/** Opens a page by its name in the sidebar. */
export const goTo = (page: Page, name: string): Promise<void> =>
  page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name, exact: true }).click();

export const toast = (page: Page) => page.locator('.toast');

/** Named states of the window. Each function leads from the previous state to this one. */
export type States = readonly (readonly [name: string, go: (opened: OpenedWindow) => Promise<unknown>])[];

/** Runs a check in each state. The result contains only states with findings. */
export async function foundIn(
  states: States,
  opened: OpenedWindow,
  look: (page: Page) => Promise<readonly string[]>,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const found: Record<string, readonly string[]> = {};
  for (const [name, go] of states) {
    await go(opened);
    const here = await look(opened.page);
    if (here.length > 0) found[name] = here;
  }
  return found;
}

/** The accessibility violations in each state. Dark mode only needs the contrast check. */
export const brokenIn = (states: States, opened: OpenedWindow, colorScheme: 'light' | 'dark') =>
  foundIn(states, opened, (page) => accessibilityViolations(page, colorScheme === 'dark' ? 'color-contrast' : undefined));
