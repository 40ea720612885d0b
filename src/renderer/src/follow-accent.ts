import type { PreloadBridge } from '../../contract/window.ts';

/** The style sheet with the owner's own colour is read before anything is shown, and again when they choose another. */
export function followAccent(pipe: Pick<PreloadBridge, 'onChange'>): void {
  let times = 0;
  pipe.onChange((change) => {
    if (change?.kind !== 'accent') return;
    times += 1;
    document.querySelector('link[rel=stylesheet][href*="accent"]')?.setAttribute('href', `./accent.css?${times}`);
  });
}
