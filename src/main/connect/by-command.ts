import { readConfigFile } from './config-file.ts';
import type { Connector, ClientEntry } from './connector.ts';

interface OwnCommand {
  /** Arguments that make the client's own program add our entry for all projects of the user. */
  readonly args: (entry: ClientEntry) => readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Returns a connector that lets the client's own program create a missing configuration file, because the program may add
 * settings that the client needs. We edit an existing file ourselves: the program takes seconds to rewrite a file, and the client
 * could write to the file meanwhile.
 */
export const byCommand = (client: Connector, { args, environment }: OwnCommand): Connector => ({
  ...client,
  async connect(machine, offer) {
    const steps = await client.connect(machine, offer);
    const { program, config } = await client.detect(machine);
    if (program === undefined) return steps;
    return steps.map((step) =>
      step.does === 'edit' && step.path === config && readConfigFile(step.path) === undefined
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

/** Returns the option, such as `--env`, and `NAME=value` for each environment variable of the entry. */
export const variables = (option: string, { env }: ClientEntry): string[] =>
  Object.entries(env).flatMap(([name, value]) => [option, `${name}=${value}`]);
