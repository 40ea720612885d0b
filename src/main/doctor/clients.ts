import type { ClientRow } from '../../contract/client.ts';
import type { MemoryConnection } from '../cli/memory-connection.ts';
import { formatMinute } from '../cli/times.ts';
import { type Finding, ok, warn } from './finding.ts';

/** How the agents stand that were connected once; of the others there is nothing to say. */
export async function clientFindings(memory: MemoryConnection): Promise<Finding[]> {
  const { clients } = await memory.call('clients', {});
  return clients.filter(({ subject }) => subject !== undefined).map(findingOf);
}

function findingOf({ id, name, state, why, token }: ClientRow): Finding {
  const again = `Connect it again with: helmdeck-memory connect ${id}`;
  if (state === 'connected' && token?.paused === true)
    return warn('agent', `${name} is paused.`, `Let it in again with: helmdeck-memory token resume ${token.id}`);
  if (state === 'connected') return ok('agent', `${name} is connected, and ${usedAt(token?.last_used_at)}.`);
  if (state === 'no_token') return warn('agent', `The token of ${name} was revoked or has expired.`, again);
  if (state === 'differs') return warn('agent', `${name} has another entry of our name than the one that was put there.`, again);
  if (state === 'broken') return warn('agent', `${name} does not work.`, why ?? again);
  return warn('agent', `${name} wiped its entry, so it does not reach this memory.`, again);
}

const usedAt = (at: string | undefined): string =>
  at === undefined ? 'was not there yet' : `was last there at ${formatMinute(at)}`;
