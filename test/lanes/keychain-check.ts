/** One line for each check, with its figures if it has any. A check that fails does not end the case. */
export async function check(name: string, step: () => unknown): Promise<void> {
  try {
    const figures = await step();
    console.log(`ok ${name}${typeof figures === 'string' ? ` | ${figures}` : ''}`);
  } catch (error) {
    console.log(`FAILED ${name} | ${(error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ')}`);
    console.error(error);
  }
}

/** The same for a promise that cannot be kept until something is there that is missing; nobody may take it for kept. */
export async function gap(name: string, missing: string, step: () => unknown): Promise<void> {
  try {
    await step();
    console.log(`ok ${name}`);
  } catch {
    console.log(`skipped: ${missing} (${name})`);
  }
}
