import type { Page } from 'playwright-core';
import { accessibilityViolations, type OpenedWindow } from '../support/window.ts';

/** Goes to a page by its name in the sidebar. */
export const goTo = (page: Page, name: string): Promise<void> =>
  page.getByRole('navigation', { name: 'Sections' }).getByRole('button', { name, exact: true }).click();

export const toast = (page: Page) => page.locator('.toast');

/** From one state of the window to the next, each with its name. */
export type States = readonly (readonly [name: string, go: (opened: OpenedWindow) => Promise<unknown>])[];

/** What is found in each state, by its name; where nothing is, the state is left out. */
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

/** The rules that are broken in each state. What is shown is the same in light and dark; its colours are not. */
export const brokenIn = (states: States, opened: OpenedWindow, colorScheme: 'light' | 'dark') =>
  foundIn(states, opened, (page) => accessibilityViolations(page, colorScheme === 'dark' ? 'color-contrast' : undefined));
