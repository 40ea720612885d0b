import type { CommandContext } from './command-context.ts';

export interface Argument {
  readonly description: string;
  readonly optional?: true;
  /** Takes all remaining words as one text. */
  readonly rest?: true;
}

export interface Option {
  readonly description: string;
  /** Placeholder for the value in the help, such as <time>. Absent for a flag. */
  readonly value?: string;
  /** Can be repeated. */
  readonly many?: true;
}

type Arguments = Readonly<Record<string, Argument>>;
type Options = Readonly<Record<string, Option>>;

type ReadArguments<A extends Arguments> = {
  readonly [Name in keyof A]: A[Name] extends { optional: true } ? string | undefined : string;
};

type ReadOptions<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends { many: true }
    ? readonly string[]
    : O[Name] extends { value: string }
      ? string | undefined
      : boolean;
};

/** Parsed arguments and options, by their names in the command's spec. */
interface Typed<A extends Arguments, O extends Options> {
  readonly arguments: ReadArguments<A>;
  readonly options: ReadOptions<O>;
}

interface Spec<A extends Arguments, O extends Options> {
  /** One or two words, such as `key init`. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly description: string;
  readonly arguments?: A;
  readonly options?: O;
  /** Further paragraphs for the help. */
  readonly details?: readonly string[];
  /** Command lines without the program name. */
  readonly examples?: readonly string[];
  /** Returns an exit code; undefined means success. */
  readonly run: (typed: Typed<A, O>, context: CommandContext) => Promise<number | void>;
}

/** A command without the types of its own arguments and options. */
export interface Command extends Omit<Spec<Arguments, Options>, 'run'> {
  readonly run: (typed: ParsedArguments, context: CommandContext) => Promise<number | void>;
}

export interface ParsedArguments {
  readonly arguments: Readonly<Record<string, string | undefined>>;
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
}

/** Infers the types that `run` receives from the arguments and options of the spec. */
export const command = <const A extends Arguments, const O extends Options>(spec: Spec<A, O>): Command =>
  // Safe: the parser builds its result from this same spec.
  spec as unknown as Command;

export interface Group {
  readonly title: string;
  readonly commands: readonly Command[];
}
