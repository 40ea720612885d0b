import { Failure } from '../../contract/failure.ts';
import { hasScope } from '../../core/access/caller.ts';
import type { BodyReader } from '../request-body.ts';
import { API_PATH } from '../rest-routes.ts';
import type { Route } from '../router.ts';

/** A new link to the window, for the owner's own helpers. */
export const windowLinkRoute = (windowLink: () => string | undefined, bodies: BodyReader): Route => ({
  method: 'POST',
  path: `${API_PATH}/window`,
  transport: 'owner',
  operation: 'window',
  async handle({ caller, request, response }) {
    if (!hasScope(caller, 'admin')) {
      throw new Failure('insufficient_scope', 'This is for the owner alone; use a token with the scope admin.');
    }
    // Node would read a body that is left unread to its end without a limit.
    await bodies.readJson(request, response, caller.subject);
    const link = windowLink();
    if (link !== undefined) return { link };
    throw new Failure('not_found', 'This program was built without a window; run npm run build first.');
  },
});
