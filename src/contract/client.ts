import * as z from 'zod';
import { count, flag, inputObject, lazy, noInput, notTextError, type SchemaOutput, Time } from './schema.ts';
import { Subject } from './token.ts';

const clientShape = 'must be the id of a client, such as claude-code; list the clients to see their ids';

export const ClientId = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[a-z][a-z0-9-]{0,31}$/, { error: clientShape })
    .describe('The id of the client, such as claude-code.'),
);

export const ClientsInput = lazy(() =>
  noInput(
    'List clients',
    'Lists the programs on this machine that can be connected, which of them are, and when each last used its token.',
  ),
);

export const CLIENT_STATES = ['not_installed', 'not_connected', 'connected', 'differs', 'wiped', 'broken', 'no_token'] as const;
export type ClientState = (typeof CLIENT_STATES)[number];

export const ClientRow = lazy(() =>
  z.object({
    id: ClientId(),
    name: z.string().describe('Display name.'),
    installed: z.boolean().describe('Whether the client appears to be installed on this machine.'),
    version: z.string().exactOptional().describe('Version of the client, if it can be found without starting the client.'),
    config: z.string().describe("The client's configuration, where the entry for this memory is or would be added."),
    transport: z.enum(['stdio', 'http']).describe('How the client connects to the memory.'),
    state: z
      .enum(CLIENT_STATES)
      .describe(
        'differs: the entry for this memory is not the one that was added. wiped: the entry is missing. broken: see why. no_token: the token was revoked or has expired.',
      ),
    why: z.string().exactOptional().describe('The problem and what to do about it.'),
    subject: z.string().exactOptional().describe('The subject whose memory the client was connected to.'),
    connected_at: Time().exactOptional().describe('When the client was connected.'),
    token: z
      .object({
        id: z.string().describe('Id of the token; use it to pause or revoke the token.'),
        paused: z.boolean().describe('Whether the token is paused. Requests with a paused token are refused.'),
        expires_at: Time().describe('When the token expires.'),
        last_used_at: Time()
          .exactOptional()
          .describe('When the token was last used, to the minute. Absent if it was never used.'),
      })
      .exactOptional()
      .describe('The token that the client was given.'),
  }),
);
export type ClientRow = SchemaOutput<typeof ClientRow>;

export const ClientList = lazy(() =>
  z.object({ clients: z.array(ClientRow()).describe('Every client that this program can connect.') }),
);
export type ClientList = SchemaOutput<typeof ClientList>;

const ClientSubject = lazy(() =>
  Subject().default('me').describe('The subject whose memory the client uses. Clients with the same subject share one memory.'),
);

export const PlanConnectionInput = lazy(() =>
  inputObject(
    { client: ClientId(), subject: ClientSubject() },
    {
      title: 'Plan a connection',
      description: "Shows which of the client's files would change and which commands would run. Changes nothing.",
    },
  ),
);
export type PlanConnectionInput = SchemaOutput<typeof PlanConnectionInput>;

export const ConnectionPlan = lazy(() =>
  z.object({
    client: ClientId(),
    basis: z
      .string()
      .describe(
        'Identifies the files that the plan is based on. Send it with the connect request, which then fails if they have changed.',
      ),
    files: z
      .array(
        z.object({
          path: z.string().describe('Path of the file, with links resolved.'),
          created: z.boolean().describe('Whether the file will be created.'),
          holds_token: z
            .literal(true)
            .exactOptional()
            .describe('Present if the token will be stored in this file. Only its owner can then read the file.'),
          lines: z
            .array(
              z.object({
                sign: z.enum([' ', '-', '+']).describe('Space: unchanged. Minus: removed. Plus: added.'),
                text: z.string().describe('Text of the line.'),
              }),
            )
            .describe('The changed lines, with unchanged lines around them.'),
        }),
      )
      .describe('Files that would change.'),
    commands: z
      .array(z.object({ program: z.string().describe('Program to run.'), args: z.array(z.string()).describe('Its arguments.') }))
      .describe('Commands that would be run. Empty if the files are edited directly.'),
    link: z
      .string()
      .exactOptional()
      .describe(
        'A link that adds the same entry to another profile of the client, after the client has asked. It contains no token.',
      ),
    afterwards: z
      .string()
      .exactOptional()
      .describe('Step for the owner before the client uses the change, such as a restart of the client.'),
  }),
);
export type ConnectionPlan = SchemaOutput<typeof ConnectionPlan>;

export const ClientVerification = lazy(() =>
  z.object({
    works: z.boolean().describe('Whether the program that the client starts reached this memory and got a response.'),
    why: z.string().exactOptional().describe('The problem and what to do about it.'),
    tools: count('Number of tools that the client would see.'),
  }),
);
export type ClientVerification = SchemaOutput<typeof ClientVerification>;

export const ConnectClientInput = lazy(() =>
  inputObject(
    {
      client: ClientId(),
      subject: ClientSubject(),
      basis: z
        .string({ error: notTextError })
        .max(128, { error: 'must be the basis of a plan; copy it from the plan, or leave it out' })
        .exactOptional()
        .describe('The basis of the plan that was shown. The request fails if the files have changed since.'),
    },
    {
      title: 'Connect a client',
      description:
        "Creates a token for the client, adds the entry for this memory to the client's configuration, and tests the connection. The rest of the configuration stays unchanged.",
    },
  ),
);
export type ConnectClientInput = SchemaOutput<typeof ConnectClientInput>;

export const ConnectReceipt = lazy(() =>
  z.object({
    client: ClientId(),
    subject: z.string().describe('The subject whose memory the client uses.'),
    token: z.string().describe("Id of the client's token."),
    expires_at: Time().describe('When the token expires.'),
    verified: ClientVerification().describe('Result of the connection test.'),
    afterwards: z
      .string()
      .exactOptional()
      .describe('Step for the owner before the client uses the change, such as a restart of the client.'),
  }),
);
export type ConnectReceipt = SchemaOutput<typeof ConnectReceipt>;

export const DisconnectClientInput = lazy(() =>
  inputObject(
    { client: ClientId() },
    {
      title: 'Disconnect a client',
      description:
        'Revokes the token of a client and removes the entry from its configuration. A file that was not changed since is restored byte for byte.',
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
          path: z.string().describe('Path of the file.'),
          as_before: z
            .boolean()
            .describe(
              'true: the file is the same as before it was connected. false: it had other changes, so only the entry was removed.',
            ),
        }),
      )
      .describe('Files that were restored or edited.'),
  }),
);
export type DisconnectReceipt = SchemaOutput<typeof DisconnectReceipt>;

export const VerifyClientInput = lazy(() =>
  inputObject(
    { client: ClientId() },
    {
      title: 'Test a connection',
      description:
        'Starts the program that the client would start, according to its configuration, and sends a request to this memory through it.',
    },
  ),
);
export type VerifyClientInput = SchemaOutput<typeof VerifyClientInput>;

export const PauseTokenInput = lazy(() =>
  inputObject(
    {
      id: z
        .string({ error: notTextError })
        .regex(/^[!-~]{1,128}$/, { error: 'must be the id of a token; copy it from the list of tokens' })
        .describe('Id of the token.'),
      paused: flag().describe('true pauses the token, false resumes it.'),
    },
    {
      title: 'Pause a token',
      description: 'Pauses or resumes a token. Requests with a paused token are refused.',
    },
  ),
);
export type PauseTokenInput = SchemaOutput<typeof PauseTokenInput>;

export const PauseReceipt = lazy(() =>
  z.object({
    id: z.string().describe('Id of the token.'),
    paused: z.boolean().describe('Whether the token is paused now.'),
  }),
);
export type PauseReceipt = SchemaOutput<typeof PauseReceipt>;
