import { readConfigFile } from './config-file.ts';
import type { Connector, Entry } from './connector.ts';

interface OwnCommand {
  /** Arguments that add our entry for all projects of the user. */
  readonly args: (entry: Entry) => readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * A client whose own program creates the configuration file, because it may add what it needs. We edit an existing file ourselves:
 * the program takes seconds to rewrite it, and the client could write to it meanwhile.
 */
export const byCommand = (client: Connector, { args, environment }: OwnCommand): Connector => ({
  ...client,
  async connect(machine, offer) {
    const steps = await client.connect(machine, offer);
    const { program } = await client.detect(machine);
    if (program === undefined) return steps;
    return steps.map((step) =>
      step.does === 'edit' && readConfigFile(step.path) === undefined
        ? {
            does: 'run',
            program,
            args: args(offer.entry),
            ...(environment && { environment }),
            touches: [step.path],
            instead: step,
          }
        : step,
    );
  },
});

/** Repeats an option such as `--env` for each NAME=value. */
export const variables = (option: string, { env }: Entry): string[] =>
  Object.entries(env).flatMap(([name, value]) => [option, `${name}=${value}`]);
