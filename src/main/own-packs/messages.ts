import * as z from 'zod';
import { CATEGORY } from '../../contract/categories.ts';
import { PACK, TTL } from '../../contract/limits.ts';
import { PackVersion } from '../../contract/pack.ts';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';

/**
 * The task of a pack's process, sent as its first input line. Contains the pack's source, so that the process reads no pack file.
 */
export type PackTask = DescribeTask | RunTask;

interface DescribeTask {
  readonly to: 'describe';
  readonly name: string;
  readonly source: string;
}

interface RunTask {
  readonly to: 'run';
  readonly name: string;
  readonly source: string;
  readonly input: unknown;
  readonly caller: { readonly subject: string; readonly client: string };
  readonly session?: string;
  /** The namespace of the pack's memory. Absent if the pack has no memory. */
  readonly memory?: string;
}

/** Messages that the program sends to a pack's process after the task. */
export type ProgramMessage =
  | { readonly is: 'answer'; readonly id: number; readonly value?: unknown }
  | { readonly is: 'refusal'; readonly id: number; readonly message: string }
  | { readonly is: 'abort' };

const JsonSchema = lazy(() => z.record(z.string(), z.unknown()));

export const PackDescription = lazy(() =>
  z.strictObject({
    version: PackVersion(),
    title: z.string().trim().min(1).max(100),
    description: z.string().trim().min(1).max(2000),
    input: JsonSchema(),
    output: JsonSchema(),
    memory: z
      .strictObject({
        cache: z.literal(true).exactOptional(),
        capture: z.literal(true).exactOptional(),
        ttl: z.int().min(1).max(TTL.max).exactOptional(),
        category: z.string().regex(CATEGORY.pattern).exactOptional(),
      })
      .exactOptional(),
    seconds: z.int().min(1).max(PACK.maxTimeout).exactOptional(),
    intents: z.array(z.string().min(1).max(100)).max(20).exactOptional(),
    changes: z.enum(['nothing', 'adds', 'destroys']).exactOptional(),
    hosts: z.array(z.string().max(260)).min(1).max(32).exactOptional(),
  }),
);
export type PackDescription = SchemaOutput<typeof PackDescription>;

/** Messages from a pack's process. The process runs untrusted code, so each message is validated here. */
export const PackMessage = lazy(() =>
  z.discriminatedUnion('is', [
    z.object({ is: z.literal('described'), pack: z.unknown() }),
    z.object({ is: z.literal('done'), output: z.unknown() }),
    z.object({
      is: z.literal('failed'),
      code: z.enum(['invalid_input', 'invalid_output', 'handler_failed']),
      message: z.string(),
      /** If the run failed because a request was refused: the id of that request. */
      refused: z.int().exactOptional(),
    }),
    z.object({
      is: z.literal('progress'),
      done: z.number(),
      of: z.number().exactOptional(),
      saying: z.string().max(200).exactOptional(),
    }),
    z.object({ is: z.literal('log'), text: z.string() }),
    z.object({ is: z.literal('doNotCache') }),
    z.object({ is: z.literal('request'), id: z.int().min(0), operation: z.string(), parameters: z.array(z.unknown()) }),
  ]),
);
export type PackMessage = SchemaOutput<typeof PackMessage>;
