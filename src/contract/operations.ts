import type * as z from 'zod';
import { FactDetail, FactFilter, FactInput, FactKey, FactList, FactPatch, FactReceipt, FactSummary } from './fact.ts';
import { ForgetInput, ForgetReceipt } from './forget.ts';
import { Activity, ActivityInput, FactHistory, UndoInput, UndoReceipt } from './history.ts';
import {
  Callers,
  CallersInput,
  Context,
  ContextInput,
  MyDefaults,
  MyDefaultsInput,
  MyMemory,
  MyMemoryInput,
  Status,
  StatusInput,
} from './projection.ts';
import { QmdAnswer, QmdQuestion, SearchAnswer, SearchInput } from './query.ts';

/**
 * Everything memory can be asked. The core implements exactly this table, and every wire's schemas are generated from it.
 * Who is asking is not in any input: it comes from the token.
 */
export const operations = {
  remember: { input: FactInput, output: FactReceipt },
  recall: {
    input: FactKey.meta({
      title: 'Recall a fact',
      description: 'Reads one fact by its exact key, with its value, times and writer.',
    }),
    output: FactDetail,
  },
  list: { input: FactFilter, output: FactList },
  patch: { input: FactPatch, output: FactSummary },
  forget: { input: ForgetInput, output: ForgetReceipt },
  history: {
    input: FactKey.meta({
      title: 'Show the history of a fact',
      description: 'Reads the earlier versions of one fact, newest first.',
    }),
    output: FactHistory,
  },
  undo: { input: UndoInput, output: UndoReceipt },
  activity: { input: ActivityInput, output: Activity },
  search: { input: SearchInput, output: SearchAnswer },
  query: { input: QmdQuestion, output: QmdAnswer },
  context: { input: ContextInput, output: Context },
  myMemory: { input: MyMemoryInput, output: MyMemory },
  myDefaults: { input: MyDefaultsInput, output: MyDefaults },
  callers: { input: CallersInput, output: Callers },
  status: { input: StatusInput, output: Status },
} as const satisfies Record<string, { input: z.ZodType; output: z.ZodType }>;

export type OperationName = keyof typeof operations;

/** As a caller sends it. */
export type Request<Name extends OperationName> = z.input<(typeof operations)[Name]['input']>;
/** As the core receives it: parsed, in canonical form. */
export type Input<Name extends OperationName> = z.output<(typeof operations)[Name]['input']>;
export type Output<Name extends OperationName> = z.output<(typeof operations)[Name]['output']>;

/** Own names only: `constructor` and `toString` are not operations. */
export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name);
