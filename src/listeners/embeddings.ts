import type { Perform } from '../core/perform.ts';
import type { Bodies } from './body.ts';
import { hangUp } from './hang-up.ts';
import { refuseQuery } from './rest.ts';
import type { Route } from './routes.ts';

/** Where clients of OpenAI's wire look for it below the address that they are told: not under our own paths (R-EMB-01). */
export const EMBEDDINGS = '/v1/embeddings';

export const embeddingsRoute = ({ perform, bodies }: { perform: Perform; bodies: Bodies }): Route => ({
  method: 'POST',
  path: EMBEDDINGS,
  transport: 'rest',
  operation: 'embed',
  async handle({ request, response, caller, query }) {
    refuseQuery(query);
    const input = await bodies.json(request, response, caller.subject);
    return perform(caller, 'embed', input, { signal: hangUp(response) });
  },
});
