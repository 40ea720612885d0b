import type { CommandContext } from './command-context.ts';

export interface Argument {
  readonly description: string;
  readonly optional?: true;
  /** The argument receives all remaining words of the command line, joined by spaces. */
  readonly rest?: true;
}

export interface Option {
  readonly description: string;
  /** Placeholder for the option's value in help texts, such as `<time>`. Absent for a flag, which has no value. */
  readonly value?: string;
  /** The option can be given more than once. */
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

/** Arguments and options that the parser read from the command line, under their names in `Spec`. */
interface TypedArguments<A extends Arguments, O extends Options> {
  readonly arguments: ReadArguments<A>;
  readonly options: ReadOptions<O>;
}

interface Spec<A extends Arguments, O extends Options> {
  /** Name of the command: one or two words, such as `key init`. */
  readonly name: string;
  /** Description in one line, shown in the list of commands. */
  readonly description: string;
  readonly arguments?: A;
  readonly options?: O;
  /** Additional paragraphs, shown only by `help <command>`. */
  readonly details?: readonly string[];
  /** Example command lines, without the program name. */
  readonly examples?: readonly string[];
  /** Returns an exit code; undefined means success. */
  readonly run: (typed: TypedArguments<A, O>, context: CommandContext) => Promise<number | void>;
}

/** Any command, for code that does not know the types of the command's own arguments and options. */
export interface Command extends Omit<Spec<Arguments, Options>, 'run'> {
  readonly run: (typed: ParsedArguments, context: CommandContext) => Promise<number | void>;
}

export interface ParsedArguments {
  readonly arguments: Readonly<Record<string, string | undefined>>;
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
}

/** Defines a command. TypeScript infers the parameter types of `run` from `arguments` and `options`. */
export const command = <const A extends Arguments, const O extends Options>(spec: Spec<A, O>): Command =>
  // The cast is safe, because the parser builds the input of `run` from the same spec.
  spec as unknown as Command;

export interface Group {
  readonly title: string;
  readonly commands: readonly Command[];
}
