import type { CommandContext } from './command-context.ts';

export interface Argument {
  readonly says: string;
  readonly optional?: true;
  /** Takes all the words that are left, as one text. */
  readonly rest?: true;
}

export interface Option {
  readonly says: string;
  /** What stands for its value in the help, such as <time>. Absent for one that is there or not. */
  readonly value?: string;
  /** May be given more than once. */
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

/** What was typed, by the names in the command's own table. */
interface Typed<A extends Arguments, O extends Options> {
  readonly arguments: ReadArguments<A>;
  readonly options: ReadOptions<O>;
}

interface Spec<A extends Arguments, O extends Options> {
  /** One or two words. */
  readonly name: string;
  /** One line, as the list of commands shows it. */
  readonly says: string;
  readonly arguments?: A;
  readonly options?: O;
  /** What else there is to know, a paragraph each. */
  readonly more?: readonly string[];
  /** Without the name of the program. */
  readonly examples?: readonly string[];
  /** The exit code, or nothing when it was done. */
  readonly run: (typed: Typed<A, O>, desk: CommandContext) => Promise<number | void>;
}

/** A command as the parser, the help and the documentation see it. */
export interface Command extends Omit<Spec<Arguments, Options>, 'run'> {
  readonly run: (typed: ParsedArguments, desk: CommandContext) => Promise<number | void>;
}

export interface ParsedArguments {
  readonly arguments: Readonly<Record<string, string | undefined>>;
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
}

/** Lets `run` see exactly the arguments and options that stand beside it. */
export const command = <const A extends Arguments, const O extends Options>(spec: Spec<A, O>): Command =>
  // The parser reads by this very table, so what it hands over has the shape that the table says.
  spec as unknown as Command;

export interface Group {
  readonly title: string;
  readonly commands: readonly Command[];
}
