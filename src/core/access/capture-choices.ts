import type { CaptureChoice } from '../../contract/client.ts';
import type { Vault } from '../store/store.ts';
import { CAPTURE_CHOICES } from '../store/vault.ts';

type Choice = Omit<CaptureChoice, 'client'>;

const OFF: Choice = { capture: false, accept: false };

/**
 * Stores for which clients the owner's statements in prompts are proposed as facts, and for which of them the facts are stored at once
 * (R-INBOX-09). All clients are stored in one encrypted text, because names of clients must not be stored in plaintext. Without a
 * choice, nothing is proposed.
 */
export class CaptureChoices {
  readonly #vault: Vault;

  constructor(vault: Vault) {
    this.#vault = vault;
  }

  async all(): Promise<ReadonlyMap<string, Choice>> {
    return parse(await this.#vault.read(CAPTURE_CHOICES));
  }

  async of(client: string): Promise<Choice> {
    return (await this.all()).get(client) ?? OFF;
  }

  /** Changes the fields that are given. Returns the whole choice. */
  async change({ client, ...changes }: { readonly client: string } & Partial<Choice>): Promise<CaptureChoice> {
    const text = await this.#vault.update(CAPTURE_CHOICES, (known) => {
      const choices = parse(known);
      choices.set(client, { ...OFF, ...choices.get(client), ...changes });
      return JSON.stringify([...choices].filter(([, { capture, accept }]) => capture || accept));
    });
    return { client, ...OFF, ...parse(text).get(client) };
  }
}

// This cast is safe, because decryption proves that this program wrote the text.
const parse = (text: string | undefined): Map<string, Choice> =>
  new Map(text === undefined ? [] : (JSON.parse(text) as [client: string, choice: Choice][]));
