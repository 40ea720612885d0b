import * as z from 'zod';
import { HOOK_EVENTS } from './names.ts';
import { PackName } from './pack.ts';
import { count, flag, inputObject, lazy, noInput, notTextError, type SchemaOutput, Time } from './schema.ts';
import { ClientName, Subject } from './token.ts';

const clientShape = 'must be the id of a client, such as `claude-code`; list the clients to see their ids';

export const ClientId = lazy(() =>
  z
    .string({ error: notTextError })
    .regex(/^[a-z][a-z0-9-]{0,31}$/, { error: clientShape })
    .describe('Id of the client, such as `claude-code`.'),
);

export const ClientsInput = lazy(() =>
  noInput(
    'List clients',
    'Lists the programs that can be connected to this memory. Shows which are connected, and when each last used its token.',
  ),
);

export const CLIENT_STATES = ['not_installed', 'not_connected', 'connected', 'differs', 'wiped', 'broken', 'no_token'] as const;
export type ClientState = (typeof CLIENT_STATES)[number];

export type HookEvent = (typeof HOOK_EVENTS)[number];

const hooksShape = `must be a list of events from ${HOOK_EVENTS.join(', ')}; send a JSON array, or leave the field out`;

const HookEvents = lazy(() => z.array(z.enum(HOOK_EVENTS), { error: hooksShape }));

export const HOOK_STATES = ['on', 'off', 'waits_for_review', 'differs'] as const;

export const ClientRow = lazy(() =>
  z.object({
    id: ClientId(),
    name: z.string().describe('Display name.'),
    installed: z.boolean().describe('Whether the client appears to be installed on this machine.'),
    version: z
      .string()
      .exactOptional()
      .describe('Version of the client. Absent if the version can be found only by starting the client.'),
    config: z
      .string()
      .describe("The client's configuration, to which the entry for this memory is added when the client is connected."),
    transport: z
      .enum(['stdio', 'http'])
      .describe('How the client connects. `stdio`: it starts a program. `http`: it sends requests to the URL of this memory.'),
    state: z
      .enum(CLIENT_STATES)
      .describe(
        'State of the connection. `differs`: the entry for this memory was changed after it was added. `wiped`: the entry was removed. `broken`: the connection cannot work, for the reason in `why`. `no_token`: the token was revoked or has expired.',
      ),
    why: z.string().exactOptional().describe('The problem, and how to solve it. Absent if there is no problem.'),
    subject: z.string().exactOptional().describe('The subject to whose memory the client is connected.'),
    connected_at: Time().exactOptional().describe('When the client was connected.'),
    server: z
      .string()
      .exactOptional()
      .describe('URL of the server to which the client is connected. Absent if it is connected to the memory on this machine.'),
    token: z
      .object({
        id: z.string().describe('Id of the token, needed to pause or revoke the token.'),
        paused: z.boolean().describe('Whether the token is paused. Requests with a paused token are refused.'),
        expires_at: Time().describe('When the token expires.'),
        last_used_at: Time()
          .exactOptional()
          .describe('When the token was last used, to the minute. Absent if the token was never used.'),
        quarantined: z
          .literal(true)
          .exactOptional()
          .describe('Present if everything that the client writes waits in the Inbox until the owner accepts it.'),
      })
      .exactOptional()
      .describe('The token that was created for the client. Absent if the client has no token.'),
    hooks: z
      .object({
        events: HookEvents().describe(
          'Events at which the client asks for a brief. `session`: at the start of a session. `prompt`: before each prompt.',
        ),
        state: z
          .enum(HOOK_STATES)
          .describe(
            'State of the hooks. `waits_for_review`: the client runs the hooks only after its user has reviewed them. `differs`: the hooks were changed or removed, or cannot run, for the reason in `why`.',
          ),
        why: z.string().exactOptional().describe('The problem, and how to solve it. Absent if there is no problem.'),
      })
      .exactOptional()
      .describe("The client's hooks. Absent if the client has no hooks that Helmdeck Memory can use."),
    packs: z
      .array(z.string())
      .exactOptional()
      .describe('Names of the packs that the client is offered. Absent if the client is offered all packs.'),
    capture: z
      .literal(true)
      .exactOptional()
      .describe("Present if statements in the owner's prompts to this client are proposed as facts in the Inbox."),
    accept: z
      .literal(true)
      .exactOptional()
      .describe('Present if such facts are stored at once, instead of waiting in the Inbox.'),
  }),
);
export type ClientRow = SchemaOutput<typeof ClientRow>;

export const ClientList = lazy(() =>
  z.object({ clients: z.array(ClientRow()).describe('All clients that Helmdeck Memory can connect.') }),
);
export type ClientList = SchemaOutput<typeof ClientList>;

const ClientSubject = lazy(() =>
  Subject().default('me').describe('The subject whose memory the client uses. Clients with the same subject share one memory.'),
);

const hookChoice = lazy(() => ({
  hooks: HookEvents()
    .exactOptional()
    .describe(
      'Events at which the client asks for a brief: `session`, `prompt`, or none. If absent, the earlier choice for this client, or else both.',
    ),
  trust_hooks: flag()
    .exactOptional()
    .describe(
      'If `true`, also records in the client that its user has reviewed the hooks. Send it only if the owner has seen the hooks in the plan and agreed. Only Codex asks for a review.',
    ),
}));

export const PlanConnectionInput = lazy(() =>
  inputObject(
    { client: ClientId(), subject: ClientSubject(), ...hookChoice() },
    {
      title: 'Plan a connection',
      description:
        "Shows which of the client's files would be changed and which commands would be run to connect the client. Nothing is changed.",
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
        'Identifies the contents of the files that the plan is based on. Send this value with the connect request, so that the request fails if the files have changed.',
      ),
    files: z
      .array(
        z.object({
          path: z.string().describe('Path of the file, with symbolic links resolved.'),
          created: z.boolean().describe('Whether the file does not exist yet and would be created.'),
          holds_token: z
            .literal(true)
            .exactOptional()
            .describe('Present if connecting stores the token in this file. The file is then readable by its owner only.'),
          lines: z
            .array(
              z.object({
                sign: z
                  .enum([' ', '-', '+'])
                  .describe('Kind of the line: a space for unchanged, a minus sign for removed, a plus sign for added.'),
                text: z.string().describe('Text of the line.'),
              }),
            )
            .describe('The changed lines, with unchanged lines around them.'),
        }),
      )
      .describe('Files that would change.'),
    commands: z
      .array(
        z.object({
          program: z.string().describe('Name or path of the program.'),
          args: z.array(z.string()).describe('Arguments of the program.'),
        }),
      )
      .describe('Commands that would be run. Empty if Helmdeck Memory edits the files directly.'),
    link: z
      .string()
      .exactOptional()
      .describe(
        'A link that adds the same entry to another profile of the client. The client asks its user first. The link does not contain a token.',
      ),
    hooks: HookEvents()
      .exactOptional()
      .describe('Events at which the client would ask for a brief. Absent if Helmdeck Memory has no hooks for the client.'),
    possible_hooks: HookEvents()
      .exactOptional()
      .describe('Events at which the client can ask for a brief. Absent if Helmdeck Memory has no hooks for the client.'),
    review: z
      .enum(['needed', 'recorded'])
      .exactOptional()
      .describe(
        'Present if the client runs hooks only after its user has reviewed them. `needed`: the client will ask its user. `recorded`: the review would be recorded in the client, as `trust_hooks` requests.',
      ),
    afterwards: z
      .string()
      .exactOptional()
      .describe(
        'Step that the owner must take before the client uses the new entry, such as restarting the client. Absent if there is no such step.',
      ),
  }),
);
export type ConnectionPlan = SchemaOutput<typeof ConnectionPlan>;

export const ClientVerification = lazy(() =>
  z.object({
    works: z
      .boolean()
      .describe('Whether the test succeeded: the program that the client starts reached this memory and got a response.'),
    why: z.string().exactOptional().describe('The problem, and how to solve it. Absent if the test succeeded.'),
    tools: count('Number of MCP tools that the client can use.'),
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
        .max(128, { error: 'must be the `basis` value of a plan; copy it from the plan, or leave it out' })
        .exactOptional()
        .describe(
          'The `basis` value of the plan that was shown. If it is sent, the request fails if the files have changed since the plan was made, or if the hooks are not those of the plan.',
        ),
      ...hookChoice(),
      quarantine: flag()
        .exactOptional()
        .describe(
          'Whether everything that the client writes waits in the Inbox until the owner accepts it. If absent, an earlier choice for the client stays; otherwise `false`.',
        ),
    },
    {
      title: 'Connect a client',
      description:
        "Creates a token for the client, adds the entry for this memory and the hooks to the client's configuration, and tests the connection. The rest of the configuration stays unchanged.",
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
      .describe(
        'Step that the owner must take before the client uses the new entry, such as restarting the client. Absent if there is no such step.',
      ),
  }),
);
export type ConnectReceipt = SchemaOutput<typeof ConnectReceipt>;

export const DisconnectClientInput = lazy(() =>
  inputObject(
    { client: ClientId() },
    {
      title: 'Disconnect a client',
      description:
        "Revokes the client's token and removes the entry for this memory and the hooks from the client's configuration. A file that has not changed since the client was connected is restored byte for byte.",
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
              'If `true`, the file is the same as before the client was connected. If `false`, the file was also changed by another program or a person, so only the entry was removed.',
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
        "Starts the program that the client's configuration names, and sends a request to this memory through that program.",
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
      paused: flag().describe('If `true`, pauses the token. If `false`, resumes it.'),
    },
    {
      title: 'Pause a token',
      description: 'Pauses or resumes a token. While the token is paused, requests with it are refused.',
    },
  ),
);
export type PauseTokenInput = SchemaOutput<typeof PauseTokenInput>;

export const PauseReceipt = lazy(() =>
  z.object({
    id: z.string().describe('Id of the token.'),
    paused: z.boolean().describe('Whether the token is now paused.'),
  }),
);
export type PauseReceipt = SchemaOutput<typeof PauseReceipt>;

const packsShape = 'must be `all` or a list of names of packs; send a JSON array';

/** The packs that a client is offered. This is both the input and the output of `offerPacks`. */
export const PackOffer = lazy(() =>
  inputObject(
    {
      client: ClientName().describe('Name of the client, as in its tokens, such as `claude-code`.'),
      packs: z
        .union([z.literal('all'), z.array(PackName()).max(256)], { error: packsShape })
        .describe('Names of the packs that the client is offered, or `all` for all packs, also packs that are added later.'),
    },
    {
      title: 'Choose the packs of a client',
      description:
        'Changes which packs a client is offered. The client sees only these packs in lists, and calls of other packs are refused. By default, a client is offered all packs.',
    },
  ),
);
export type PackOffer = SchemaOutput<typeof PackOffer>;

export const SetCaptureInput = lazy(() =>
  inputObject(
    {
      client: ClientName().describe('Name of the client, as in its tokens, such as `claude-code`.'),
      capture: flag()
        .exactOptional()
        .describe("If `true`, lasting statements in the owner's prompts to this client are proposed as facts in the Inbox."),
      accept: flag()
        .exactOptional()
        .describe(
          'If `true`, such facts are stored at once, instead of waiting in the Inbox. Suspicious text and facts of a quarantined client always wait.',
        ),
    },
    {
      title: 'Choose what a client proposes',
      description: "Changes whether facts are made from the owner's own words in prompts to a client. Off by default.",
    },
  ),
);
export type SetCaptureInput = SchemaOutput<typeof SetCaptureInput>;

export const CaptureChoice = lazy(() =>
  z.object({
    client: z.string().describe('Name of the client.'),
    capture: z.boolean().describe("Whether statements in the owner's prompts to this client are proposed as facts."),
    accept: z.boolean().describe('Whether such facts are stored at once.'),
  }),
);
export type CaptureChoice = SchemaOutput<typeof CaptureChoice>;
