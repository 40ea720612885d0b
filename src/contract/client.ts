import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, flag, notTextError, Time } from './text.ts';
import { Subject } from './token.ts';

const clientShape = 'must be the id of a client, such as claude-code; list the clients to see which there are';

export const ClientId = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[a-z][a-z0-9-]{0,31}$/, { error: clientShape })
    .describe('Which client, by its id in the list.'),
);

export const ClientsInput = lazy(() =>
  inputObject(
    {},
    {
      title: 'List clients',
      description: 'Which programs can be connected on this machine, which are, and when each of them was last there.',
    },
  ),
);

export const CLIENT_STATES = ['not_installed', 'not_connected', 'connected', 'differs', 'wiped', 'broken', 'no_token'] as const;
export type ClientState = (typeof CLIENT_STATES)[number];

export const ClientRow = lazy(() =>
  z.object({
    id: ClientId(),
    name: z.string().describe('As people know it.'),
    installed: z.boolean().describe('Whether it seems to be on this machine.'),
    version: z.string().exactOptional().describe('Its version, where that can be seen without starting it.'),
    config: z.string().describe('Its configuration, which our entry stands in, or would.'),
    transport: z.enum(['stdio', 'http']).describe('How it reaches the memory.'),
    state: z
      .enum(CLIENT_STATES)
      .describe(
        'differs: an entry with our name that is not the one put there; wiped: ours has gone; broken: see why; no_token: its token was revoked or has expired.',
      ),
    why: z.string().exactOptional().describe('What is wrong and what to do.'),
    subject: z.string().exactOptional().describe('Whose memory it was connected to.'),
    connected_at: Time().exactOptional().describe('When it was connected.'),
    token: z
      .object({
        id: z.string().describe('By this it is revoked, or paused.'),
        paused: z.boolean().describe('Whether it is refused until it is let in again.'),
        expires_at: Time().describe('When it expires.'),
        last_used_at: Time().exactOptional().describe('When it was last used, to the minute; absent if it never was.'),
      })
      .exactOptional()
      .describe('The token that it was given.'),
  }),
);
export type ClientRow = SchemaOutput<typeof ClientRow>;

export const ClientList = lazy(() => z.object({ clients: z.array(ClientRow()).describe('Every client that is known here.') }));
export type ClientList = SchemaOutput<typeof ClientList>;

const Whose = lazy(() => Subject().default('me').describe('Whose memory it opens; clients with one subject share one memory.'));

export const PlanConnectionInput = lazy(() =>
  inputObject(
    { client: ClientId(), subject: Whose() },
    {
      title: 'Plan a connection',
      description:
        "Shows what connecting a client would change in that client's own files, and what would be run. Changes nothing.",
    },
  ),
);
export type PlanConnectionInput = SchemaOutput<typeof PlanConnectionInput>;

export const ConnectionPlan = lazy(() =>
  z.object({
    client: ClientId(),
    basis: z.string().describe('Names what the plan was made from; sent back, it makes sure that nothing else is done.'),
    files: z
      .array(
        z.object({
          path: z.string().describe('The file, behind all links.'),
          created: z.boolean().describe('Whether there is none yet.'),
          holds_token: z
            .literal(true)
            .exactOptional()
            .describe('It comes to hold the token, and then nobody but its owner may read it.'),
          lines: z
            .array(
              z.object({
                sign: z.enum([' ', '-', '+']).describe('Stays, goes or comes.'),
                text: z.string().describe('The line.'),
              }),
            )
            .describe('What changes, with the lines around it.'),
        }),
      )
      .describe('Files that change.'),
    commands: z
      .array(z.object({ program: z.string().describe('The program.'), args: z.array(z.string()).describe('Its arguments.') }))
      .describe('What is run to change them, if it is not done directly.'),
    link: z
      .string()
      .exactOptional()
      .describe('Opened, it has the client offer to add the same entry, for another profile of it; it holds no token.'),
    afterwards: z.string().exactOptional().describe('What its owner has to do for the client to notice.'),
  }),
);
export type ConnectionPlan = SchemaOutput<typeof ConnectionPlan>;

export const ClientVerification = lazy(() =>
  z.object({
    works: z.boolean().describe('Whether what the client starts came through to this memory and got an answer.'),
    why: z.string().exactOptional().describe('What is wrong and what to do.'),
    tools: z.int().min(0).describe('How many tools it was offered.'),
  }),
);
export type ClientVerification = SchemaOutput<typeof ClientVerification>;

export const ConnectClientInput = lazy(() =>
  inputObject(
    {
      client: ClientId(),
      subject: Whose(),
      basis: z
        .string({ error: notTextError })
        .max(128, { error: 'must be the basis of a plan; take it from there, or leave it out' })
        .exactOptional()
        .describe('The plan that was shown: when the files have changed since, nothing is done.'),
    },
    {
      title: 'Connect a client',
      description:
        "Gives a client a token of its own and puts our entry into the client's configuration, keeping everything else there as it is; then tries it.",
    },
  ),
);
export type ConnectClientInput = SchemaOutput<typeof ConnectClientInput>;

export const ConnectReceipt = lazy(() =>
  z.object({
    client: ClientId(),
    subject: z.string().describe('Whose memory it opens.'),
    token: z.string().describe('The id of its token.'),
    expires_at: Time().describe('When its token expires.'),
    verified: ClientVerification().describe('How trying it went.'),
    afterwards: z.string().exactOptional().describe('What its owner has to do for the client to notice.'),
  }),
);
export type ConnectReceipt = SchemaOutput<typeof ConnectReceipt>;

export const DisconnectClientInput = lazy(() =>
  inputObject(
    { client: ClientId() },
    {
      title: 'Disconnect a client',
      description:
        'Revokes its token, and takes our entry out of its configuration: byte for byte as before where nobody else has changed it since.',
    },
  ),
);
export type DisconnectClientInput = SchemaOutput<typeof DisconnectClientInput>;

export const DisconnectReceipt = lazy(() =>
  z.object({
    client: ClientId(),
    files: z
      .array(
        z.object({
          path: z.string().describe('The file.'),
          as_before: z
            .boolean()
            .describe('true: it is again what it was before; false: it was changed since, and only our entry went.'),
        }),
      )
      .describe('What was put right.'),
  }),
);
export type DisconnectReceipt = SchemaOutput<typeof DisconnectReceipt>;

export const VerifyClientInput = lazy(() =>
  inputObject(
    { client: ClientId() },
    {
      title: 'Try a client',
      description: 'Starts what the client would start, as its configuration says, and asks this memory through it.',
    },
  ),
);
export type VerifyClientInput = SchemaOutput<typeof VerifyClientInput>;

export const PauseTokenInput = lazy(() =>
  inputObject(
    {
      id: z
        .string({ error: notTextError })
        .regex(/^[!-~]{1,128}$/, { error: 'must be the id of a token; take it from the list of tokens' })
        .describe('The token, by its id in the list.'),
      paused: flag().describe('true refuses it until false lets it in again.'),
    },
    {
      title: 'Pause a token',
      description: 'Refuses a token until it is let in again. Nothing else about it changes.',
    },
  ),
);
export type PauseTokenInput = SchemaOutput<typeof PauseTokenInput>;

export const PauseReceipt = lazy(() =>
  z.object({
    id: z.string().describe('The token.'),
    paused: z.boolean().describe('Whether it is refused now.'),
  }),
);
export type PauseReceipt = SchemaOutput<typeof PauseReceipt>;
