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

/** What the owner is asked in a dialog of the system, which no page can answer. */
export interface ConsentQuestion {
  readonly message: string;
  readonly detail: string;
  /** What its button says. */
  readonly yes: string;
  /** What the other one says, where it is not to cancel. */
  readonly no?: string;
}

interface Deps {
  /** Without a consent of its own: it only reads what the question has to name. */
  readonly perform: Perform;
  readonly clock: Clock;
  readonly askOwner: (question: ConsentQuestion) => Promise<boolean>;
}

/**
 * The window forgets a single fact without a question, because it offers to undo that for eight seconds, and gives one a short
 * lifetime. A page that was taken over offers nothing, so it may do so only this often before the owner is asked.
 */
const SINGLE_LOSSES = 20;
const SINGLE_LOSSES_MS = 10 * 60_000;

/** Questions that may wait behind the one that is shown. */
const WAITING = 8;

/** Facts that a question names. */
const SHOWN = 5;

/** Asks the owner of the desktop, one question at a time. */
export function desktopConsent({ perform, clock, askOwner: agrees }: Deps): Consent {
  let losses: readonly number[] = [];
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  /** Backups that exist or were allowed without a question, and may still be under way. */
  let expectedBackups = 0;

  return async (request) => {
    if (losesOneFact(request) && mayLoseOneMore()) return true;
    if (waiting > WAITING) {
      throw new Failure('rate_limited', 'Too many questions are waiting for your answer; answer them first.', { retryAfter: 1 });
    }
    waiting += 1;
    // What the question names is read when it is shown, not when it began to wait.
    const answer = last.then(async () => {
      if (request.name === 'backup' && (await mayAddBackup(request.caller))) return true;
      const question = await questionFor(request, perform);
      return question === undefined || (await agrees(question));
    });
    last = answer.catch(() => undefined).then(() => (waiting -= 1));
    const agreed = await answer;
    if (agreed && losesOneFact(request)) losses = [];
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

  function mayLoseOneMore(): boolean {
    const now = clock.steady();
    losses = losses.filter((at) => now - at < SINGLE_LOSSES_MS);
    if (losses.length >= SINGLE_LOSSES) return false;
    losses = [...losses, now];
    return true;
  }
}

/** Forgets one fact, or makes one expire soon, which the owner also sees happen in the window. */
const losesOneFact = ({ name, input }: ConsentRequest): boolean =>
  (name === 'forget' && input.scope.kind === 'key') || name === 'remember' || name === 'patch';

/** Undefined where nothing would be lost or given away. An effect that has no words of its own here is asked about by its name. */
async function questionFor(request: ConsentRequest, perform: Perform): Promise<ConsentQuestion | undefined> {
  const { caller, name, input } = request;
  // The default asks about every other effect by its name.
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check
  switch (name) {
    case 'remember':
    case 'patch':
      return questionForOneMore(input.key);
    case 'forget':
      return questionForForget(caller, input.scope, perform);
    case 'undo':
      return questionForUndo(caller, input, perform);
    case 'createPipeline':
      return {
        message: `Keep the pipeline ${shortened(input.title ?? input.id)} as your own?`,
        detail: `Agents can run it, and it is signed as yours. It runs ${shortened(input.steps.map(({ pack }) => pack).join(', '))}.`,
        yes: 'Keep',
      };
    case 'adoptPipeline': {
      const { title = input.id, client, steps } = await perform(caller, 'pipeline', { id: input.id });
      return {
        message: `Adopt the pipeline ${shortened(title)}?`,
        detail: `${shortened(client)} wrote it. From then on it counts as yours, and runs with the rights of the agent that runs it. It runs ${shortened(
          steps.map(({ pack }) => pack).join(', '),
        )}.`,
        yes: 'Adopt',
      };
    }
    case 'deletePipeline': {
      const { title = input.id } = await perform(caller, 'pipeline', input);
      return {
        message: `Delete the pipeline ${shortened(title)}?`,
        detail: 'Its definition is deleted for good. There is no undo.',
        yes: 'Delete',
      };
    }
    case 'endSession':
      return {
        message: `End the session ${shortened(input.id)}?`,
        detail: 'Its working memory is deleted. There is no undo.',
        yes: 'End Session',
      };
    case 'runPack':
      return {
        message: `Run ${shortened(input.name)}?`,
        detail: `${
          request.effect === 'discloses' ? 'It sends its input to servers outside this computer' : 'It can delete data for good'
        }. Input: ${shortened(JSON.stringify(input.input), LONGEST_INPUT)}`,
        yes: 'Run',
      };
    case 'mintToken': {
      const admin = input.scopes.includes('admin');
      return {
        message: admin
          ? 'Make a token that may do all that you may?'
          : `Make a token for the memory ${shortened(input.subject)}?`,
        detail: `Its name is ${shortened(input.name)}. ${
          admin
            ? 'Any program that has it can see and change every memory here, and its keys.'
            : `Any program that has it may ${shortened(input.scopes.map((scope) => SCOPES[scope]).join(', '))}.`
        }`,
        yes: 'Make Token',
      };
    }
    case 'pauseToken': {
      const { tokens } = await perform(caller, 'tokens', {});
      const token = tokens.find(({ id }) => id === input.id);
      return {
        message: `Resume access for ${shortened(token?.name ?? input.id)}?`,
        detail: `Its token opens the memory ${shortened(token?.subject ?? '')} again.`,
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
        detail: `It gets a token of its own for the memory ${shortened(input.subject ?? caller.subject)}.${
          files === '' ? '' : ` These files change:\n${files}`
        }`,
        yes: 'Connect',
      };
    }
    case 'setCredential': {
      const kept = (await perform(caller, 'credentials', {})).credentials.find((credential) => credential.name === input.name);
      if (kept?.kept_in === undefined) return undefined;
      return {
        message: `Replace the credential ${input.name}?`,
        detail: 'The one in the keychain is overwritten. There is no undo.',
        yes: 'Replace',
      };
    }
    case 'dropCredential':
      return {
        message: `Delete the credential ${input.name}?`,
        detail: 'It is removed from the keychain, together with the answers that were cached with it. There is no undo.',
        yes: 'Delete',
      };
    case 'unlock': {
      const { store } = await perform(caller, 'status', {});
      // Without a lock of the owner's, trying for the key again lets in nobody who was shut out.
      if (store.key.at !== 'locked') return undefined;
      return { message: 'Unlock the memory?', detail: 'Agents can read and write it again.', yes: 'Unlock' };
    }
    case 'setEmbeddings':
      // Also while embeddings are off: the choice is kept for when they are turned on.
      return {
        message: 'Use the Ollama that is already running?',
        detail:
          'The program that listens at its address receives every text that is embedded. Nothing proves that it is Ollama. Use it only if you or the system started it.',
        yes: 'Use It',
      };
    case 'approveOllama':
      return questionForOllama(caller, input, perform);
    case 'trustClock': {
      const { expired } = await perform(caller, 'trustClock', { ...input, dry_run: true });
      return {
        message: `Is it really ${input.time.slice(0, 10)}?`,
        detail: `${expired === 1 ? 'One fact has' : `${expired.toLocaleString()} facts have`} expired by that date and will be deleted for good. If the date is wrong, cancel, and set the clock of this computer.`,
        yes: 'Trust the Clock',
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
        message: 'Seal everything under a new key?',
        detail: 'The memory stays in use meanwhile. Older backups open only with the old key or with the recovery key.',
        yes: 'Rotate Key',
      };
    case 'makeRecoveryKey':
      return {
        message: 'Show a new recovery key?',
        detail: 'Anyone who reads it can open this memory. An older recovery key stops working.',
        yes: 'Show Key',
      };
    default:
      return { message: `Allow ${name}?`, detail: EFFECTS[request.effect], yes: 'Allow' };
  }
}

const questionForOneMore = (key: string): ConsentQuestion => ({
  message: 'Keep removing facts one by one?',
  detail: `${SINGLE_LOSSES} facts were forgotten, or set to expire within 7 days, in the last ten minutes. Next: ${shortened(key)}`,
  yes: 'Continue',
});

async function questionForForget(caller: Caller, scope: Scope, perform: Perform): Promise<ConsentQuestion> {
  if (scope.kind === 'key') {
    return questionForOneMore(scope.name);
  }
  const { deleted, older_backups: backups } = await perform(caller, 'forget', { scope: spellScope(scope), dry_run: true });
  const keys = await firstKeys(caller, scope, perform);
  const named = keys.map((key) => `\n${shortened(key)}`).join('');
  const more = deleted - keys.length;
  const rest = keys.length > 0 && more > 0 ? `\nand ${more.toLocaleString()} more` : '';
  return {
    message: `Forget ${deleted === 1 ? 'one entry' : `${deleted.toLocaleString()} entries`} for good?`,
    detail: `Scope: ${shortened(spellScope(scope))}. Their history and bytes are deleted too. There is no undo.${
      backups > 0 ? ' Backups still hold sealed copies.' : ''
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
      `Of the facts that it wrote since ${input.since}, ${removed} are deleted for good and ${restored} get their earlier version back.`,
    );
  }
  if (pipelines && pipelines.removed.length > 0) parts.push(`Pipelines deleted for good: ${firstNames(pipelines.removed)}.`);
  if (pipelines && pipelines.restored.length > 0) {
    parts.push(`Pipelines that get their earlier version back: ${firstNames(pipelines.restored)}.`);
  }
  if (parts.length === 0) return undefined;
  return { message: `Undo what ${shortened(input.client)} wrote?`, detail: parts.join('\n'), yes: 'Undo' };
}

/** The first few names, and how many more there are. */
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
  // A hash that was not shown is not approved, even where such a program would be found.
  if (ollama?.sha256 !== hash) throw new Failure('invalid_input', NOT_SHOWN);
  return {
    message: 'Let the program start this Ollama?',
    detail: `${shortened(ollama.path, LONGEST_PATH)}\nSHA-256 ${hash}\n\nIt runs with your rights until you turn embeddings off.`,
    yes: 'Approve',
  };
}

async function firstKeys(caller: Caller, scope: Scope, perform: Perform): Promise<readonly string[]> {
  const filter = filterOf(scope);
  if (!filter) return [];
  // Some scopes can be forgotten without the key, and then no fact can be named.
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

/** A long name must not push the question out of sight, and line breaks in a name must not imitate our text. */
function shortened(text: string, most = 80): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ');
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

const SCOPES: Readonly<Record<OperationInput<'mintToken'>['scopes'][number], string>> = {
  'memory:read': 'read the memory',
  'memory:write': 'write and forget',
  'packs:run': 'run packs',
  admin: 'do all that you may',
};

const EFFECTS: Readonly<Record<ConsentRequest['effect'], string>> = {
  destroys: 'It deletes or replaces something for good. There is no undo.',
  grants: 'It gives a program or a person access.',
  discloses: 'It sends data to another program or computer.',
  executes: 'It lets a program start on this computer.',
};

/** The owner must see which program is started. */
const LONGEST_PATH = 300;
const LONGEST_INPUT = 300;
const NOT_SHOWN = 'hash is not that of the Ollama that was found; look at it again, and send the hash that is shown.';
