import { openApi } from './openapi.ts';
import { API_PATH, rejectQuery } from './rest-routes.ts';
import type { Route } from './router.ts';

/** What the program says of itself. */
export function infoRoutes(version: string): Route[] {
  let document: object | undefined;
  const say = (path: string, operation: string, what: () => object): Route => ({
    method: 'GET',
    path: API_PATH + path,
    transport: 'rest',
    operation,
    async handle({ query }) {
      rejectQuery(query);
      return what();
    },
  });
  return [
    say('/version', 'version', () => ({ version })),
    // Made when it is first asked for: most runs of the program never are.
    say('/openapi.json', 'openapi', () => (document ??= openApi(version))),
  ];
}
