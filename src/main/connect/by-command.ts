import { readConfigFile } from './config-file.ts';
import type { Connector, Entry } from './connector.ts';

interface OwnCommand {
  /** What adds our entry for all of its owner's projects. */
  readonly args: (entry: Entry) => readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * A client whose own program makes its first configuration, since it knows what belongs into one. A configuration that is there is
 * changed by us in one stroke: the program takes seconds to lay it out anew, in which the client itself may write into it.
 */
export const byCommand = (inFile: Connector, { args, environment }: OwnCommand): Connector => ({
  ...inFile,
  async connect(machine, offer) {
    const steps = await inFile.connect(machine, offer);
    const { program } = await inFile.detect(machine);
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

/** NAME=value for each, after the option that takes it. */
export const variables = (option: string, { env }: Entry): string[] =>
  Object.entries(env).flatMap(([name, value]) => [option, `${name}=${value}`]);
