import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, notTextError, Time } from './text.ts';

export const WindowSessionsInput = lazy(() =>
  inputObject(
    {},
    {
      title: 'List browser sessions',
      description: 'Every browser that has the window open with a session of its own, the one used last first.',
    },
  ),
);

const WindowSession = lazy(() =>
  z.object({
    id: z.string().describe('Ends the session; it opens nothing.'),
    browser: z.string().describe('The browser as it describes itself, shortened. Nothing proves it.'),
    opened_at: Time().describe('When its link was followed.'),
    last_used_at: Time().describe('When it last asked for something.'),
    expires_at: Time().describe('When it ends, used or not.'),
  }),
);
export type WindowSession = SchemaOutput<typeof WindowSession>;

export const WindowSessionList = lazy(() =>
  z.object({ sessions: z.array(WindowSession()).describe('Open sessions, the one used last first.') }),
);

export const EndWindowSessionInput = lazy(() =>
  inputObject(
    {
      id: z
        .string({ error: notTextError })
        .regex(/^[0-9a-f]{12}$/, { error: 'must be the id of a browser session; take it from the list' })
        .describe('The session, by its id in the list.'),
    },
    {
      title: 'End a browser session',
      description: 'Closes the window in one browser at once. A new link opens it again.',
    },
  ),
);

export const EndWindowSessionReceipt = lazy(() => z.object({ id: z.string().describe('The session that has ended.') }));
