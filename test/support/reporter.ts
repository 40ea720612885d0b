import type { Reporter, TestModule, TestState } from 'vitest/node';

/** Ends the run with one line for people and programs: `12 passed, 0 failed`. */
export default class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()]).map((test) => test.result().state);
    const count = (state: TestState) => states.filter((each) => each === state).length;
    // A file that does not load, or a failed hook, leaves tests unrun. Count those as failed.
    const broken = modules.flatMap((module) => [module, ...module.children.allSuites()]).flatMap((place) => place.errors());
    const failed = count('failed') + count('pending') + broken.length + unhandled.length;
    const skipped = count('skipped');
    console.log(`${count('passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  }
}
