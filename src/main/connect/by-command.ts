import { readConfigFile } from './config-file.ts';
import type { Connector, Entry } from './connector.ts';

interface OwnCommand {
  /** Arguments with which the client's own program adds our entry for all projects of the user. */
  readonly args: (entry: Entry) => readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Changes a connector: if the configuration file does not exist, the client's own program creates it, because the program may add
 * settings that the client needs. We edit an existing file ourselves: the program takes seconds to rewrite the file, and the
 * client could write to the file meanwhile.
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

/** Returns the option, such as `--env`, followed by NAME=value, for each environment variable of the entry. */
export const variables = (option: string, { env }: Entry): string[] =>
  Object.entries(env).flatMap(([name, value]) => [option, `${name}=${value}`]);
