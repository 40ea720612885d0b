import { openApi } from './openapi.ts';
import { API, refuseQuery } from './rest.ts';
import type { Route } from './routes.ts';

/** What the program says of itself. */
export function about(version: string): Route[] {
  let document: object | undefined;
  const say = (path: string, operation: string, what: () => object): Route => ({
    method: 'GET',
    path: API + path,
    transport: 'rest',
    operation,
    async handle({ query }) {
      refuseQuery(query);
      return what();
    },
  });
  return [
    say('/version', 'version', () => ({ version })),
    // Made when it is first asked for: most runs of the program never are.
    say('/openapi.json', 'openapi', () => (document ??= openApi(version))),
  ];
}
