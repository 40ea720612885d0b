/** Prints one line for each check, with its figures. A failed check does not end the case. */
export async function check(name: string, step: () => unknown): Promise<void> {
  try {
    const figures = await step();
    console.log(`ok ${name}${typeof figures === 'string' ? ` | ${figures}` : ''}`);
  } catch (error) {
    console.log(`FAILED ${name} | ${(error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ')}`);
    console.error(error);
  }
}

/** Checks a promise that a missing feature of the platform can prevent. A failure counts as skipped. */
export async function gap(name: string, missing: string, step: () => unknown): Promise<void> {
  try {
    await step();
    console.log(`ok ${name}`);
  } catch {
    console.log(`skipped: ${missing} (${name})`);
  }
}
