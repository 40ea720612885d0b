import { Failure } from '../contract/failure.ts';
import { hasScope } from '../core/access/caller.ts';
import type { Perform } from '../core/operations/perform.ts';
import { abortOnClose } from './hang-up.ts';
import type { BodyReader } from './request-body.ts';
import { rejectQuery } from './rest-routes.ts';
import type { Route } from './router.ts';

/** Every operation by its name, for the command line and the window: the body is its input, the answer its output. */
export const ownerRoute = ({ perform, bodies }: { perform: Perform; bodies: BodyReader }): Route => ({
  method: 'POST',
  path: '/api/v1/owner/{operation}',
  transport: 'owner',
  operation: 'owner',
  async handle({ request, response, caller, parameter: name, query }) {
    if (!hasScope(caller, 'admin')) {
      throw new Failure('insufficient_scope', 'This is for the owner alone; use a token with the scope admin.');
    }
    rejectQuery(query);
    const input = await bodies.readJson(request, response, caller.subject);
    return (await perform(caller, name, input, { signal: abortOnClose(response) })) as object;
  },
});
