import { ApproveOllamaInput, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import { ForgetInput, type Scope, spellScope } from '../../contract/forget.ts';
import { UndoInput, type UndoReceipt } from '../../contract/history.ts';
import { isOperation, operations } from '../../contract/operations.ts';
import { MintInput } from '../../contract/token.ts';

/** What the owner is asked before it is done, in a dialog of the system, which no page can answer. */
export interface Question {
  readonly message: string;
  readonly detail: string;
  /** What its button says. */
  readonly yes: string;
  /** What the other one says, where it is not to cancel. */
  readonly no?: string;
}

/** What a forget would delete. */
export interface Going {
  readonly count: number;
  /** The first keys of the facts among it. */
  readonly keys: readonly string[];
  /** Backups that still hold sealed copies. */
  readonly backups: number;
}

/** What would come of it, with nothing done. */
interface Foreseen {
  readonly forget: (scope: Scope) => Promise<Going>;
  readonly undo: (input: UndoInput) => Promise<Pick<UndoReceipt, 'removed' | 'restored'>>;
  /** The Ollama that was found. */
  readonly ollama: () => Promise<{ readonly path: string; readonly sha256?: string } | undefined>;
}

/**
 * Whatever a page that was taken over could do once and for all is asked about. What cannot be read is not: it will be refused.
 * The window asks nothing before this, so all that it would have shown is here.
 */
export async function questionBefore(name: string, input: unknown, foresee: Foreseen): Promise<Question | undefined> {
  if (!isOperation(name) || !operations[name].input().safeParse(input).success) return undefined;
  switch (name as string) {
    case 'forget': {
      const data = ForgetInput().parse(input);
      // A single fact is forgotten at once: the window holds it ready for as long as undo is offered.
      if (data.dry_run || data.scope.kind === 'key') return undefined;
      const going = await foresee.forget(data.scope);
      const { count } = going;
      return {
        message: `Forget ${count === 1 ? 'one entry' : `${count.toLocaleString()} entries`} for good?`,
        detail: `All that fits: ${shortened(spellScope(data.scope))}. ${whatGoes(going)}`,
        yes: 'Forget',
      };
    }
    case 'undo': {
      const data = UndoInput().parse(input);
      if (data.dry_run) return undefined;
      const { removed, restored } = await foresee.undo(data);
      if (removed + restored === 0) return undefined;
      return {
        message: `Take back what ${shortened(data.client)} wrote?`,
        detail: `Of the facts that it wrote since ${data.since}, ${removed} go for good and ${restored} are as before again.`,
        yes: 'Take Back',
      };
    }
    case 'mintToken': {
      const data = MintInput().parse(input);
      if (!data.scopes.includes('admin')) return undefined;
      return {
        message: 'Make a token that may do all that you may?',
        detail: `It is called ${shortened(data.name)}. Whoever has it can see and change every memory here, and its keys.`,
        yes: 'Make Token',
      };
    }
    case 'setEmbeddings':
      // Off as well: it would be kept for when they are turned on.
      if (SetEmbeddingsInput().parse(input).adopt !== true) return undefined;
      return {
        message: 'Use the Ollama that runs already?',
        detail:
          'Whoever listens at its address is sent every text that is embedded. It must be yours or the system’s; nothing proves that it is Ollama.',
        yes: 'Use It',
      };
    case 'approveOllama': {
      const { hash } = ApproveOllamaInput().parse(input);
      const ollama = await foresee.ollama();
      // What nobody was shown is not approved, also where it would be found.
      if (ollama?.sha256 !== hash) throw new Failure('invalid_input', NOT_SHOWN);
      return {
        message: 'Let the program start this Ollama?',
        detail: `${shortened(ollama.path, LONGEST_PATH)}\nSHA-256 ${hash}\n\nIt runs as you do, until you turn embeddings off.`,
        yes: 'Approve',
      };
    }
    case 'rotateKey':
      return {
        message: 'Seal everything under a new key?',
        detail: 'The memory stays in use meanwhile. Older backups open with the older key only, or with the recovery key.',
        yes: 'Rotate Key',
      };
    case 'makeRecoveryKey':
      return {
        message: 'Show a new recovery key?',
        detail: 'Whoever reads it can open this memory. An older recovery key becomes useless.',
        yes: 'Show Key',
      };
    default:
      return undefined;
  }
}

function whatGoes({ count, keys, backups }: Going): string {
  const more = count - keys.length;
  const named = keys.map((key) => `\n${shortened(key)}`).join('');
  const rest = keys.length > 0 && more > 0 ? `\nand ${more.toLocaleString()} more` : '';
  const copies = backups > 0 ? ' Backups still hold sealed copies.' : '';
  return `History and bytes go with it, and there is no undo.${copies}${named === '' ? '' : `\n${named}${rest}`}`;
}

/** In a dialog, a long name must not push the question out of sight, nor a name that holds lines look like words of ours. */
function shortened(text: string, most = 80): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ');
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** What is started by it has to be seen. */
const LONGEST_PATH = 300;
const NOT_SHOWN = 'hash is not that of the Ollama that was found; look at it again, and send what is shown.';
