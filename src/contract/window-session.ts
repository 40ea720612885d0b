import * as z from 'zod';
import { later, type Of } from './later.ts';
import { ask, notText, Time } from './text.ts';

export const WindowSessionsInput = later(() =>
  ask(
    {},
    {
      title: 'List browser sessions',
      description: 'Every browser that has the window open with a session of its own, the one used last first.',
    },
  ),
);

const WindowSession = later(() =>
  z.object({
    id: z.string().describe('Ends the session; it opens nothing.'),
    browser: z.string().describe('The browser as it describes itself, shortened. Nothing proves it.'),
    opened_at: Time().describe('When its link was followed.'),
    last_used_at: Time().describe('When it last asked for something.'),
    expires_at: Time().describe('When it ends, used or not.'),
  }),
);
export type WindowSession = Of<typeof WindowSession>;

export const WindowSessionList = later(() =>
  z.object({ sessions: z.array(WindowSession()).describe('Open sessions, the one used last first.') }),
);

export const EndWindowSessionInput = later(() =>
  ask(
    {
      id: z
        .string({ error: notText })
        .regex(/^[0-9a-f]{12}$/, { error: 'must be the id of a browser session; take it from the list' })
        .describe('The session, by its id in the list.'),
    },
    {
      title: 'End a browser session',
      description: 'Closes the window in one browser at once. A new link opens it again.',
    },
  ),
);

export const EndedWindowSession = later(() => z.object({ id: z.string().describe('The session that has ended.') }));
