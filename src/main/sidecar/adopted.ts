import type { Clock } from '../../core/clock.ts';
import { isOfOurUsers } from './port-owner.ts';
import { Trouble } from './trouble.ts';
import { OllamaWire } from './wire.ts';

/** An Ollama that runs already. What it is its owner vouches for; whose it is, the system. */
export function adopted(url: URL, clock: Clock): OllamaWire {
  const host = url.hostname === '[::1]' ? '::1' : '127.0.0.1';
  const port = Number(url.port || 80);
  const prove = async (): Promise<void> => {
    if (!(await isOfOurUsers(port))) throw new Trouble('foreign');
  };
  return new OllamaWire({ host, port, clock, prove });
}
