import type { ApproveOllamaInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import { type Scope, spellScope } from '../../contract/forget.ts';
import { BACKUPS_KEPT } from '../../contract/limits.ts';
import type { OperationInput, OperationRequest } from '../../contract/operations.ts';
import type { Caller } from '../../core/access/caller.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Clock } from '../../core/time/clock.ts';

type Consent = NonNullable<CallContext['consent']>;
type ConsentRequest = Parameters<Consent>[0];

/** A question for a system dialog, which no page can answer. */
export interface ConsentQuestion {
  readonly message: string;
  readonly detail: string;
  /** Label of the confirming button. The other button is Cancel. */
  readonly yes: string;
}

interface Deps {
  /** Reads the data that a question names. */
  readonly perform: Perform;
  readonly clock: Clock;
  readonly askOwner: (question: ConsentQuestion) => Promise<boolean>;
}

/**
 * The window may forget or shorten a single fact without a question, because it offers an undo. A compromised page would offer none,
 * so more removals than this need the owner's consent.
 */
const SINGLE_LOSSES = 20;
const SINGLE_LOSSES_MS = 10 * 60_000;

/** Questions that can wait while another one is shown. */
const WAITING = 8;

/** Names listed in a question. */
const SHOWN = 5;

/** Asks the owner of the desktop, one question at a time. */
export function desktopConsent({ perform, clock, askOwner }: Deps): Consent {
  let losses: readonly number[] = [];
  let lastQuestion: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  /** Backups that exist or were allowed without a question, and may still be under way. */
  let expectedBackups = 0;

  return async (request) => {
    if (removesOneFact(request) && isWithinLimit()) return true;
    if (waiting > WAITING) {
      throw new Failure('rate_limited', 'Too many questions are waiting for your answer. Answer them first.', { retryAfter: 1 });
    }
    waiting += 1;
    // Reads the data when the question is shown, because it may change while the question waits.
    const answer = lastQuestion.then(async () => {
      if (request.name === 'backup' && (await mayAddBackup(request.caller))) return true;
      const question = await questionFor(request, perform);
      return question === undefined || (await askOwner(question));
    });
    lastQuestion = answer.catch(() => undefined).then(() => (waiting -= 1));
    const agreed = await answer;
    if (agreed && removesOneFact(request)) losses = [];
    return agreed;
  };

  /** Whether one more backup certainly deletes no older one. */
  async function mayAddBackup(caller: Caller): Promise<boolean> {
    const { backups } = await perform(caller, 'backups', {});
    expectedBackups = Math.max(expectedBackups, backups.length);
    if (expectedBackups >= BACKUPS_KEPT) return false;
    expectedBackups += 1;
    return true;
  }

  function isWithinLimit(): boolean {
    const now = clock.steady();
    losses = losses.filter((at) => now - at < SINGLE_LOSSES_MS);
    if (losses.length >= SINGLE_LOSSES) return false;
    losses = [...losses, now];
    return true;
  }
}

/** Whether the request forgets one fact or makes it expire soon. The window shows both. */
const removesOneFact = ({ name, input }: ConsentRequest): boolean =>
  (name === 'forget' && input.scope.kind === 'key') || name === 'remember' || name === 'patch';

/** The question for a request; undefined if nothing would be lost or disclosed. Requests without their own text use a general question. */
async function questionFor(request: ConsentRequest, perform: Perform): Promise<ConsentQuestion | undefined> {
  const { caller, name, input } = request;
  // The default case covers every other operation.
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check
  switch (name) {
    case 'remember':
    case 'patch':
      return questionForMoreRemovals(input.key);
    case 'forget':
      return questionForForget(caller, input.scope, perform);
    case 'undo':
      return questionForUndo(caller, input, perform);
    case 'createPipeline':
      return {
        message: `Save the pipeline ${shortened(input.title ?? input.id)} as yours?`,
        detail: `Agents can run it, and you are its author. It runs these packs: ${shortened(input.steps.map(({ pack }) => pack).join(', '))}.`,
        yes: 'Save',
      };
    case 'adoptPipeline': {
      const { title = input.id, client, steps } = await perform(caller, 'pipeline', { id: input.id });
      return {
        message: `Adopt the pipeline ${shortened(title)}?`,
        detail: `${shortened(client)} wrote it. You become its author. It runs with the rights of the agent that starts it, and runs these packs: ${shortened(
          steps.map(({ pack }) => pack).join(', '),
        )}.`,
        yes: 'Adopt',
      };
    }
    case 'deletePipeline': {
      const { title = input.id } = await perform(caller, 'pipeline', input);
      return {
        message: `Delete the pipeline ${shortened(title)}?`,
        detail: 'Its definition is deleted permanently. This cannot be undone.',
        yes: 'Delete',
      };
    }
    case 'endSession':
      return {
        message: `End the session ${shortened(input.id)}?`,
        detail: 'Its working memory is deleted. This cannot be undone.',
        yes: 'End Session',
      };
    case 'runPack':
      return {
        message: `Run ${shortened(input.name)}?`,
        detail: `${
          request.effect === 'discloses'
            ? 'It sends its input to servers outside this computer'
            : 'It can delete data permanently'
        }. Input: ${shortened(JSON.stringify(input.input), LONGEST_INPUT)}`,
        yes: 'Run',
      };
    case 'mintToken': {
      const admin = input.scopes.includes('admin');
      return {
        message: admin ? 'Create a token with all your rights?' : `Create a token for the memory ${shortened(input.subject)}?`,
        detail: `Its name is ${shortened(input.name)}. ${
          admin
            ? 'A program with this token can read and change every memory on this computer, and its keys.'
            : `A program with this token can ${shortened(input.scopes.map((scope) => SCOPES[scope]).join(', '))}.`
        }`,
        yes: 'Create Token',
      };
    }
    case 'pauseToken': {
      const { tokens } = await perform(caller, 'tokens', {});
      const token = tokens.find(({ id }) => id === input.id);
      return {
        message: `Resume access for ${shortened(token?.name ?? input.id)}?`,
        detail: `It can use the memory ${shortened(token?.subject ?? '')} again.`,
        yes: 'Resume',
      };
    }
    case 'connectClient': {
      const { clients } = await perform(caller, 'clients', {});
      const plan = await perform(caller, 'planConnection', { client: input.client, subject: input.subject });
      const client = clients.find(({ id }) => id === input.client)?.name ?? input.client;
      const files = plan.files.map(({ path }) => `\n${shortened(path, LONGEST_PATH)}`).join('');
      return {
        message: `Connect ${shortened(client)}?`,
        detail: `It gets its own token for the memory ${shortened(input.subject ?? caller.subject)}.${
          files === '' ? '' : ` These files will be changed:\n${files}`
        }`,
        yes: 'Connect',
      };
    }
    case 'setCredential': {
      const stored = (await perform(caller, 'credentials', {})).credentials.find((credential) => credential.name === input.name);
      if (stored?.kept_in === undefined) return undefined;
      return {
        message: `Replace the credential ${input.name}?`,
        detail: 'The credential in the keychain is overwritten. This cannot be undone.',
        yes: 'Replace',
      };
    }
    case 'dropCredential':
      return {
        message: `Delete the credential ${input.name}?`,
        detail: 'It is removed from the keychain, and results that packs cached with it are deleted. This cannot be undone.',
        yes: 'Delete',
      };
    case 'unlock': {
      const { store } = await perform(caller, 'status', {});
      // If the owner has not locked the memory, unlocking gives no one access that the owner had removed.
      if (store.key.at !== 'locked') return undefined;
      return { message: 'Unlock the memory?', detail: 'Agents can read and write it again.', yes: 'Unlock' };
    }
    case 'setEmbeddings':
      // Also asked while embeddings are off, because the choice is saved.
      return {
        message: 'Use the Ollama that is already running?',
        detail:
          'The program at that address receives every text that is embedded, and it may not be Ollama. Continue only if you or the system started it.',
        yes: 'Use It',
      };
    case 'approveOllama':
      return questionForOllama(caller, input, perform);
    case 'trustClock': {
      const { expired } = await perform(caller, 'trustClock', { ...input, dry_run: true });
      return {
        message: `Is today ${input.time.slice(0, 10)}?`,
        detail: `By that date, ${expired === 1 ? 'one fact has' : `${expired.toLocaleString()} facts have`} expired and will be deleted permanently. If the date is wrong, cancel and correct the clock of this computer.`,
        yes: 'Yes, Delete Expired Facts',
      };
    }
    case 'backup':
      return {
        message: 'Make another backup?',
        detail: `Only the ${BACKUPS_KEPT} newest backups are kept. Older ones are deleted for good.`,
        yes: 'Back Up',
      };
    case 'rotateKey':
      return {
        message: 'Re-encrypt the memory with a new key?',
        detail: 'You can use the memory meanwhile. Existing backups can be opened only with the old key or the recovery key.',
        yes: 'Rotate Key',
      };
    case 'makeRecoveryKey':
      return {
        message: 'Create a new recovery key?',
        detail: 'It is shown once. Anyone who has it can open this memory. Your earlier recovery key stops working.',
        yes: 'Create Key',
      };
    default:
      return { message: `Allow ${name}?`, detail: EFFECTS[request.effect], yes: 'Allow' };
  }
}

const questionForMoreRemovals = (key: string): ConsentQuestion => ({
  message: 'Continue to remove facts?',
  detail: `In the last ten minutes, ${SINGLE_LOSSES} facts were forgotten or set to expire within 7 days. The next one is ${shortened(key)}.`,
  yes: 'Continue',
});

async function questionForForget(caller: Caller, scope: Scope, perform: Perform): Promise<ConsentQuestion> {
  if (scope.kind === 'key') {
    return questionForMoreRemovals(scope.name);
  }
  const { deleted, older_backups: backups } = await perform(caller, 'forget', { scope: spellScope(scope), dry_run: true });
  const keys = await firstKeys(caller, scope, perform);
  const named = keys.map((key) => `\n${shortened(key)}`).join('');
  const more = deleted - keys.length;
  const rest = keys.length > 0 && more > 0 ? `\nand ${more.toLocaleString()} more` : '';
  return {
    message: `Forget ${deleted === 1 ? 'one entry' : `${deleted.toLocaleString()} entries`}?`,
    detail: `Scope: ${shortened(spellScope(scope))}. They are erased with their history. This cannot be undone.${
      backups > 0 ? ' Existing backups still contain encrypted copies.' : ''
    }${named === '' ? '' : `\n${named}${rest}`}`,
    yes: 'Forget',
  };
}

async function questionForUndo(
  caller: Caller,
  input: OperationInput<'undo'>,
  perform: Perform,
): Promise<ConsentQuestion | undefined> {
  const { removed, restored, pipelines } = await perform(caller, 'undo', { ...input, dry_run: true });
  const parts: string[] = [];
  if (removed + restored > 0) {
    parts.push(
      `Of the facts that it wrote since ${input.since}, ${removed} will be deleted permanently and ${restored} will return to their earlier version.`,
    );
  }
  if (pipelines && pipelines.removed.length > 0) parts.push(`Pipelines deleted permanently: ${firstNames(pipelines.removed)}.`);
  if (pipelines && pipelines.restored.length > 0) {
    parts.push(`Pipelines returned to their earlier version: ${firstNames(pipelines.restored)}.`);
  }
  if (parts.length === 0) return undefined;
  return { message: `Undo the changes of ${shortened(input.client)}?`, detail: parts.join('\n'), yes: 'Undo' };
}

/** Lists the first names and the number of further ones. */
function firstNames(names: readonly string[]): string {
  const more = names.length - SHOWN;
  const first = names.slice(0, SHOWN).map((name) => shortened(name));
  return `${first.join(', ')}${more > 0 ? `, and ${more.toLocaleString()} more` : ''}`;
}

async function questionForOllama(
  caller: Caller,
  { hash }: ReturnType<ReturnType<typeof ApproveOllamaInput>['parse']>,
  perform: Perform,
): Promise<ConsentQuestion> {
  const { ollama } = await perform(caller, 'embeddings', {});
  // Approves only the hash of the Ollama that was found, which the window shows.
  if (ollama?.sha256 !== hash) throw new Failure('invalid_input', NOT_SHOWN);
  return {
    message: 'Allow Helmdeck Memory to start this Ollama?',
    detail: `${shortened(ollama.path, LONGEST_PATH)}\nSHA-256 ${hash}\n\nIt runs with your user rights until you turn embeddings off.`,
    yes: 'Allow',
  };
}

async function firstKeys(caller: Caller, scope: Scope, perform: Perform): Promise<readonly string[]> {
  const filter = filterOf(scope);
  if (!filter) return [];
  // Without the key some scopes can be forgotten, but their facts cannot be listed.
  const listed = await perform(caller, 'list', { ...filter, limit: SHOWN }).catch(() => undefined);
  return listed?.facts.map(({ key }) => key) ?? [];
}

/** The filter that lists the facts of a scope; undefined for scopes of other entries. */
function filterOf(scope: Scope): Pick<OperationRequest<'list'>, 'prefix' | 'category' | 'tag' | 'client'> | undefined {
  switch (scope.kind) {
    case 'all':
    case 'facts':
      return {};
    case 'prefix':
    case 'category':
    case 'tag':
    case 'client':
      return { [scope.kind]: scope.name };
    case 'key':
    case 'packs':
    case 'pipelines':
    case 'pack':
    case 'pipeline':
      return undefined;
  }
}

/** Shortens a name, so that it cannot hide the question, and removes line breaks, so that it cannot imitate our text. */
function shortened(text: string, most = 80): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ');
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

const SCOPES: Readonly<Record<OperationInput<'mintToken'>['scopes'][number], string>> = {
  'memory:read': 'read the memory',
  'memory:write': 'write and forget',
  'packs:run': 'run packs',
  admin: 'do everything that you can do',
};

const EFFECTS: Readonly<Record<ConsentRequest['effect'], string>> = {
  destroys: 'It permanently deletes or replaces data. This cannot be undone.',
  grants: 'It gives a program or a person access to your memory.',
  discloses: 'It sends data to another program or computer.',
  executes: 'It starts a program on this computer.',
};

/** Long enough to identify the program or file. */
const LONGEST_PATH = 300;
const LONGEST_INPUT = 300;
const NOT_SHOWN = 'The hash is not that of the Ollama that was found. Open the page again and approve the hash that it shows.';
