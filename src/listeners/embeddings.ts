import type { Perform } from '../core/operations/perform.ts';
import { abortOnClose } from './hang-up.ts';
import type { BodyReader } from './request-body.ts';
import { rejectQuery } from './rest-routes.ts';
import type { Route } from './router.ts';

/** Where clients of OpenAI's wire look for it below the address that they are told: not under our own paths (R-EMB-01). */
export const EMBEDDINGS_PATH = '/v1/embeddings';

export const embeddingsRoute = ({ perform, bodies }: { perform: Perform; bodies: BodyReader }): Route => ({
  method: 'POST',
  path: EMBEDDINGS_PATH,
  transport: 'rest',
  operation: 'embed',
  async handle({ request, response, caller, query }) {
    rejectQuery(query);
    const input = await bodies.readJson(request, response, caller.subject);
    return perform(caller, 'embed', input, { signal: abortOnClose(response) });
  },
});
