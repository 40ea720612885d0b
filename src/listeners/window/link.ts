import { Failure } from '../../contract/failure.ts';
import { permits } from '../../core/caller.ts';
import type { Bodies } from '../body.ts';
import { API } from '../rest.ts';
import type { Route } from '../routes.ts';

/** A new link to the window, for the owner's own helpers. */
export const windowRoute = (windowLink: () => string | undefined, bodies: Bodies): Route => ({
  method: 'POST',
  path: `${API}/window`,
  transport: 'owner',
  operation: 'window',
  async handle({ caller, request, response }) {
    if (!permits(caller, 'admin')) {
      throw new Failure('insufficient_scope', 'This is for the owner alone; use a token with the scope admin.');
    }
    // Node would read a body that is left unread to its end without a limit.
    await bodies.json(request, response, caller.subject);
    const link = windowLink();
    if (link !== undefined) return { link };
    throw new Failure('not_found', 'This program was built without a window; run npm run build first.');
  },
});
