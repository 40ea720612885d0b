import * as z from 'zod';
import { inputObject, lazy, noInput, notTextError, type SchemaOutput, Time } from './schema.ts';

export const WindowSessionsInput = lazy(() =>
  noInput(
    'List browser sessions',
    'Lists the browser sessions in which the Helmdeck Memory window is open, most recently used first.',
  ),
);

const WindowSession = lazy(() =>
  z.object({
    id: z.string().describe('Id of the session, needed to end the session. The id is not a secret and gives no access.'),
    browser: z.string().describe('Name of the browser, as the browser reports it. The name is not verified.'),
    opened_at: Time().describe('When the link to the window was opened.'),
    last_used_at: Time().describe('When the session was last used.'),
    expires_at: Time().describe('When the session expires, even if it is in use.'),
  }),
);
export type WindowSession = SchemaOutput<typeof WindowSession>;

export const WindowSessionList = lazy(() =>
  z.object({ sessions: z.array(WindowSession()).describe('Open sessions, most recently used first.') }),
);

export const EndWindowSessionInput = lazy(() =>
  inputObject(
    {
      id: z
        .string({ error: notTextError })
        .regex(/^[0-9a-f]{12}$/, { error: 'must be the id of a browser session; copy it from the list of browser sessions' })
        .describe('Id of the session, from the list of browser sessions.'),
    },
    {
      title: 'End a browser session',
      description: 'Ends one browser session immediately. To open the window in that browser again, create a new link.',
    },
  ),
);

export const EndWindowSessionReceipt = lazy(() => z.object({ id: z.string().describe('Id of the session that was ended.') }));
