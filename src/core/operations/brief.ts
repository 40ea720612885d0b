import { namespaceOf } from '../access/caller.ts';
import { selectForPrompt, selectForSession } from '../brief/select.ts';
import { tagHint, writeBrief } from '../brief/text.ts';
import { isMarked } from '../inbox/marks.ts';
import type { Memory, MemoryDeps } from './memory.ts';

/** Maximum milliseconds that a brief waits for the meaning of its prompt. A hook has little time, and words then decide alone. */
const MEANING_MS = 150;

/**
 * Tells an agent what is worth knowing now, without being asked by its model (R-BRIEF). The prompt is used for this answer only. It is
 * never stored or logged.
 */
export const brief = ({ store, finder, scheduler, brief: { bytes } }: MemoryDeps): Pick<Memory, 'brief'> => ({
  async brief(caller, { prompt, folder, repeat }) {
    const silent = { text: '', keys: [] };
    if (bytes === 0) return silent;
    const project = folder === undefined ? undefined : lastNameOf(folder);
    const request = {
      namespace: namespaceOf(caller),
      client: caller.client,
      project,
      yieldTurn: () => scheduler.yieldTurn(caller.subject),
    };
    const isStart = prompt === undefined || repeat === true;
    const [forPrompt, forSession] = await Promise.all([
      prompt === undefined
        ? []
        : selectForPrompt(
            { finder, store },
            { ...request, prompt, comparesMeanings: finder.comparesMeanings, signal: AbortSignal.timeout(MEANING_MS) },
          ),
      isStart ? selectForSession({ finder, store }, request) : [],
    ]);
    const facts = new Map([...forPrompt, ...forSession].map((fact) => [fact.key, fact]));
    const ending = isStart && project !== undefined ? tagHint(project) : undefined;
    const ordinary = facts.values().filter((fact) => !isMarked(fact));
    const { text, shown } = writeBrief([...ordinary], { bytes, now: store.now(), ending });
    return { text, keys: shown.map(({ key }) => key) };
  },
});

/** Returns the last name of a path of any operating system. Undefined for the root folder. */
const lastNameOf = (path: string): string | undefined =>
  path
    .split(/[/\\]+/)
    .findLast((name) => name !== '')
    ?.normalize('NFC');
