import type { ApproveOllamaInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import { type Scope, spellScope } from '../../contract/forget.ts';
import { BACKUPS_KEPT } from '../../contract/limits.ts';
import type { OperationInput, OperationName, OperationRequest } from '../../contract/operations.ts';
import type { Caller } from '../../core/access/caller.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { Clock } from '../../core/time/clock.ts';

type Consent = NonNullable<CallContext['consent']>;
type ConsentRequest = Parameters<Consent>[0];

/** A question to the owner. Shown in a system dialog, because a page cannot answer such a dialog. */
export interface ConsentQuestion {
  readonly message: string;
  readonly detail: string;
  /** Label of the button that confirms. The other button is Cancel. */
  readonly yes: string;
}

interface Deps {
  /** Runs operations that read the data for a question. */
  readonly perform: Perform;
  readonly clock: Clock;
  readonly askOwner: (question: ConsentQuestion) => Promise<boolean>;
}

/**
 * Number of facts that the window can remove in `FREE_REMOVALS_WINDOW_MS` without consent. Shortening a fact's lifetime also
 * counts as a removal. The window asks no question for a single fact, because the window offers undo. A compromised page would
 * not offer undo, so more removals need the owner's consent.
 */
const FREE_REMOVALS = 20;
const FREE_REMOVALS_WINDOW_MS = 10 * 60_000;

/** Maximum number of questions that wait while another question is shown. */
const MAX_WAITING = 8;

const MAX_NAMES = 5;

/** Creates the function that asks the desktop's owner for consent, one question at a time. */
export function desktopConsent({ perform, clock, askOwner }: Deps): Consent {
  let removals: readonly number[] = [];
  let lastQuestion: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  /** Number of backups that exist or were allowed without a question. An allowed backup may still be running. */
  let expectedBackups = 0;

  return async (request) => {
    if (removesOneFact(request) && isWithinLimit()) return true;
    if (waiting > MAX_WAITING) {
      throw new Failure('rate_limited', 'Too many questions are waiting for your answer. Answer the open questions first.', {
        retryAfter: 1,
      });
    }
    waiting += 1;
    // Read the data when the question is shown, because the data may change while the question waits.
    const answer = lastQuestion.then(async () => {
      if (request.name === 'backup' && (await canAddBackup(request.caller))) return true;
      const question = await questionFor(request, perform);
      return question === undefined || (await askOwner(question));
    });
    lastQuestion = answer.catch(() => undefined).then(() => (waiting -= 1));
    const agreed = await answer;
    if (agreed && removesOneFact(request)) removals = [];
    return agreed;
  };

  /** True if another backup would not delete an older backup. */
  async function canAddBackup(caller: Caller): Promise<boolean> {
    const { backups } = await perform(caller, 'backups', {});
    expectedBackups = Math.max(expectedBackups, backups.length);
    if (expectedBackups >= BACKUPS_KEPT) return false;
    expectedBackups += 1;
    return true;
  }

  function isWithinLimit(): boolean {
    const now = clock.steady();
    removals = removals.filter((at) => now - at < FREE_REMOVALS_WINDOW_MS);
    if (removals.length >= FREE_REMOVALS) return false;
    removals = [...removals, now];
    return true;
  }
}

/** True if the request forgets one fact or can make one fact expire soon. */
const removesOneFact = ({ name, input }: ConsentRequest): boolean =>
  (name === 'forget' && input.scope.kind === 'key') ||
  (name === 'dropInbox' && input.id !== undefined) ||
  name === 'remember' ||
  name === 'patch';

/** What the builder of a question can use besides the input of the operation. */
interface QuestionContext {
  readonly caller: Caller;
  readonly perform: Perform;
  readonly effect: ConsentRequest['effect'];
}

type QuestionBuilder<Name extends OperationName> = (
  input: OperationInput<Name>,
  context: QuestionContext,
) => ConsentQuestion | undefined | Promise<ConsentQuestion | undefined>;

/** Returns the question for a request, or undefined if nothing would be lost or disclosed. */
async function questionFor(
  { caller, name, input, effect }: ConsentRequest,
  perform: Perform,
): Promise<ConsentQuestion | undefined> {
  // The table pairs each name with its input. The compiler cannot follow that pairing through a union.
  const build = QUESTIONS[name];
  if (!build) return { message: `Allow ${name}?`, detail: EFFECTS[effect], yes: 'Allow' };
  return build(input as never, { caller, perform, effect });
}

/** Builds the questions of operations. Operations without a question of their own get a general question. */
const QUESTIONS: { readonly [Name in OperationName]?: QuestionBuilder<Name> } = {
  remember: ({ key }) => questionForMoreRemovals(key),
  patch: ({ key }) => questionForMoreRemovals(key),
  forget: ({ scope }, { caller, perform }) => questionForForget(caller, scope, perform),
  undo: (input, { caller, perform }) => questionForUndo(caller, input, perform),
  dropInbox: ({ id, client }) =>
    id === undefined
      ? {
          message: client === undefined ? 'Drop everything in the Inbox?' : `Drop what ${shortened(client)} has in the Inbox?`,
          detail: 'The writes that wait for your approval are deleted permanently. This cannot be undone.',
          yes: 'Drop',
        }
      : questionForMoreRemovals('an item of the Inbox'),
  createPipeline: ({ id, title = id, steps }, { caller: { owner, client } }) => ({
    // A pipeline from the Inbox belongs to the client that wrote it.
    message: `Save the pipeline ${shortened(title)} ${owner ? 'as yours' : `of ${shortened(client)}`}?`,
    detail: `${owner ? 'You become' : `${shortened(client)} becomes`} the pipeline's author, and agents can run the pipeline. It runs these packs: ${packsOf(steps)}.`,
    yes: 'Save',
  }),
  async adoptPipeline({ id }, { caller, perform }) {
    const { title = id, client, steps } = await perform(caller, 'pipeline', { id });
    return {
      message: `Adopt the pipeline ${shortened(title)}?`,
      detail: `${shortened(client)} wrote this pipeline. You become its author. The pipeline runs with the rights of the agent that starts it. It runs these packs: ${packsOf(steps)}.`,
      yes: 'Adopt',
    };
  },
  async deletePipeline(input, { caller, perform }) {
    const { title = input.id } = await perform(caller, 'pipeline', input);
    return {
      message: `Delete the pipeline ${shortened(title)}?`,
      detail: "The pipeline's definition is deleted permanently. This cannot be undone.",
      yes: 'Delete',
    };
  },
  endSession: ({ id }) => ({
    message: `End the session ${shortened(id)}?`,
    detail: "The session's working memory is deleted. This cannot be undone.",
    yes: 'End Session',
  }),
  runPack: ({ name, input }, { effect }) => ({
    message: `Run ${shortened(name)}?`,
    detail: `${
      effect === 'discloses'
        ? 'The pack sends its input to servers outside this computer'
        : 'The pack can delete data permanently'
    }. Input: ${shortened(JSON.stringify(input), MAX_INPUT_CHARACTERS)}`,
    yes: 'Run',
  }),
  mintToken({ name, subject, scopes }) {
    const admin = scopes.includes('admin');
    return {
      message: admin ? 'Create a token with all your rights?' : `Create a token for the memory ${shortened(subject)}?`,
      detail: `The token's name is ${shortened(name)}. ${
        admin
          ? 'A program with this token can read and change every memory and every key on this computer.'
          : `A program with this token can ${shortened(scopes.map((scope) => SCOPES[scope]).join(', '))}.`
      }`,
      yes: 'Create Token',
    };
  },
  async pauseToken(input, { caller, perform }) {
    const { tokens } = await perform(caller, 'tokens', {});
    const token = tokens.find(({ id }) => id === input.id);
    return {
      message: `Resume access for ${shortened(token?.name ?? input.id)}?`,
      detail: `The agent can use the memory ${shortened(token?.subject ?? '')} again.`,
      yes: 'Resume',
    };
  },
  offerPacks({ client, packs }) {
    const offered = packs === 'all' ? 'all packs, also packs that are added later' : packs.join(', ');
    return {
      message: `Offer ${packs === 'all' ? 'all packs' : 'these packs'} to ${shortened(client)}?`,
      detail: `The program can run ${shortened(offered, MAX_INPUT_CHARACTERS)}.`,
      yes: 'Offer',
    };
  },
  setCapture: ({ client, accept = false }) => ({
    message: `Let ${shortened(client)} ${accept ? 'store' : 'propose'} facts from your prompts?`,
    detail: accept
      ? 'Lasting statements in your prompts to this program are stored as facts at once. Suspicious text waits in the Inbox.'
      : 'Lasting statements in your prompts to this program wait in the Inbox until you accept them.',
    yes: 'Allow',
  }),
  async connectClient(input, { caller, perform }) {
    const { clients } = await perform(caller, 'clients', {});
    const { basis: _, ...wanted } = input;
    const plan = await perform(caller, 'planConnection', wanted);
    const client = clients.find(({ id }) => id === input.client)?.name ?? input.client;
    const files = plan.files.map(({ path }) => `\n${shortened(path, MAX_PATH_CHARACTERS)}`).join('');
    return {
      message: `Connect ${shortened(client)}?`,
      detail: `The program gets its own token for the memory ${shortened(input.subject ?? caller.subject)}.${
        input.trust_hooks === true ? ` ${shortened(client)} will run the hooks without asking you to review them.` : ''
      }${files === '' ? '' : ` These files will be changed:\n${files}`}`,
      yes: 'Connect',
    };
  },
  async setCredential({ name }, { caller, perform }) {
    const stored = (await perform(caller, 'credentials', {})).credentials.find((credential) => credential.name === name);
    if (stored?.kept_in === undefined) return undefined;
    return {
      message: `Replace the credential ${name}?`,
      detail: 'The credential in the keychain is overwritten. This cannot be undone.',
      yes: 'Replace',
    };
  },
  dropCredential: ({ name }) => ({
    message: `Delete the credential ${name}?`,
    detail:
      'The credential is deleted from the keychain. Results that packs cached with this credential are also deleted. This cannot be undone.',
    yes: 'Delete',
  }),
  async unlock(_input, { caller, perform }) {
    const { store } = await perform(caller, 'status', {});
    // Ask only if the owner locked the memory. In other states, unlocking restores no access that the owner had removed.
    if (store.key.at !== 'locked') return undefined;
    return { message: 'Unlock the memory?', detail: 'Agents can read and write the memory again.', yes: 'Unlock' };
  },
  // Asked even while embeddings are off, because the choice is saved.
  setEmbeddings: () => ({
    message: 'Use the Ollama that is already running?',
    detail:
      "The program at Ollama's address receives every text that is embedded. That program may not be Ollama. Continue only if you or the system started it.",
    yes: 'Use It',
  }),
  approveOllama: (input, { caller, perform }) => questionForOllama(caller, input, perform),
  async trustClock(input, { caller, perform }) {
    const { expired } = await perform(caller, 'trustClock', { ...input, dry_run: true });
    return {
      message: `Is today ${input.time.slice(0, 10)}?`,
      detail: `By that date, ${expired === 1 ? 'one fact has' : `${expired.toLocaleString()} facts have`} expired and will be deleted permanently. If the date is wrong, cancel and correct the clock of this computer.`,
      yes: 'Yes, Delete Expired Facts',
    };
  },
  backup: () => ({
    message: 'Make another backup?',
    detail: `Only the ${BACKUPS_KEPT} newest backups are kept. Older ones are deleted for good.`,
    yes: 'Back Up',
  }),
  rotateKey: () => ({
    message: 'Re-encrypt the memory with a new key?',
    detail: 'You can use the memory meanwhile. Existing backups can be opened only with the old key or the recovery key.',
    yes: 'Rotate Key',
  }),
  makeRecoveryKey: () => ({
    message: 'Create a new recovery key?',
    detail: 'The new key is shown only once. Anyone who has it can open this memory. Your earlier recovery key stops working.',
    yes: 'Create Key',
  }),
};

const packsOf = (steps: readonly { readonly pack: string }[]): string => shortened(steps.map(({ pack }) => pack).join(', '));

const questionForMoreRemovals = (key: string): ConsentQuestion => ({
  message: 'Allow more facts to be removed?',
  detail: `In the last ten minutes, ${FREE_REMOVALS} facts were forgotten or set to expire within 7 days. The next fact is ${shortened(key)}.`,
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
    detail: `Scope: ${shortened(spellScope(scope))}. The entries are erased with their history. This cannot be undone.${
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
      `Of the facts that this client wrote since ${input.since}, ${removed} will be deleted permanently and ${restored} will return to their earlier version.`,
    );
  }
  if (pipelines && pipelines.removed.length > 0) parts.push(`Pipelines deleted permanently: ${firstNames(pipelines.removed)}.`);
  if (pipelines && pipelines.restored.length > 0) {
    parts.push(`Pipelines returned to their earlier version: ${firstNames(pipelines.restored)}.`);
  }
  if (parts.length === 0) return undefined;
  return { message: `Undo the changes of ${shortened(input.client)}?`, detail: parts.join('\n'), yes: 'Undo' };
}

/** Lists a few of the names, followed by the number of the other names. */
function firstNames(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  const first = names.slice(0, MAX_NAMES).map((name) => shortened(name));
  return `${first.join(', ')}${more > 0 ? `, and ${more.toLocaleString()} more` : ''}`;
}

async function questionForOllama(
  caller: Caller,
  { hash }: ReturnType<ReturnType<typeof ApproveOllamaInput>['parse']>,
  perform: Perform,
): Promise<ConsentQuestion> {
  const { ollama } = await perform(caller, 'embeddings', {});
  // Refuse any hash except the hash of the Ollama that was found, because the window shows only that hash.
  if (ollama?.sha256 !== hash) throw new Failure('invalid_input', WRONG_HASH);
  return {
    message: 'Allow Helmdeck Memory to start this Ollama?',
    detail: `${shortened(ollama.path, MAX_PATH_CHARACTERS)}\nSHA-256 ${hash}\n\nOllama runs with your user rights until you turn embeddings off.`,
    yes: 'Allow',
  };
}

async function firstKeys(caller: Caller, scope: Scope, perform: Perform): Promise<readonly string[]> {
  const filter = filterOf(scope);
  if (!filter) return [];
  // Ignore errors: without the master key, some scopes can be forgotten but their facts cannot be listed.
  const listed = await perform(caller, 'list', { ...filter, limit: MAX_NAMES }).catch(() => undefined);
  return listed?.facts.map(({ key }) => key) ?? [];
}

/** Returns the filter that lists the facts of a scope, or undefined if the scope contains no facts or a single fact. */
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

/**
 * Shortens a name, so that it cannot push the question out of view. Removes line breaks, so that a name cannot imitate the
 * dialog's own text.
 */
function shortened(text: string, most = 80): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ');
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

const SCOPES: Readonly<Record<OperationInput<'mintToken'>['scopes'][number], string>> = {
  'memory:read': 'read the memory',
  'memory:write': 'store and delete facts',
  'packs:run': 'run packs',
  'memory:brief': 'ask which facts matter for a prompt',
  admin: 'do everything that you can do',
};

const EFFECTS: Readonly<Record<ConsentRequest['effect'], string>> = {
  destroys: 'This operation permanently deletes or replaces data. This cannot be undone.',
  grants: 'This operation gives a program or a person access to your memory.',
  discloses: 'This operation sends data to another program or computer.',
  executes: 'This operation starts a program on this computer.',
};

/** Maximum characters shown of a path: enough to identify the program or file. */
const MAX_PATH_CHARACTERS = 300;
const MAX_INPUT_CHARACTERS = 300;
const WRONG_HASH =
  'The hash does not match the Ollama that was found. Open the page again and approve the hash that the page shows.';
