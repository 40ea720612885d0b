import { Failure } from '../contract/failure.ts';
import { permits } from '../core/caller.ts';
import type { Perform } from '../core/perform.ts';
import type { Bodies } from './body.ts';
import { hangUp } from './hang-up.ts';
import { refuseQuery } from './rest.ts';
import type { Route } from './routes.ts';

/** Every operation by its name, for the command line and the window: the body is its input, the answer its output. */
export const ownerDoor = ({ perform, bodies }: { perform: Perform; bodies: Bodies }): Route => ({
  method: 'POST',
  path: '/api/v1/owner/{operation}',
  transport: 'owner',
  operation: 'owner',
  async handle({ request, response, caller, name, query }) {
    if (!permits(caller, 'admin')) {
      throw new Failure('insufficient_scope', 'This is for the owner alone; use a token with the scope admin.');
    }
    refuseQuery(query);
    const input = await bodies.json(request, response, caller.subject);
    return (await perform(caller, name, input, { signal: hangUp(response) })) as object;
  },
});
