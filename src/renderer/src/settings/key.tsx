import { useState } from 'react';
import { useDoing } from '../doing.ts';
import { useAsked, useIsAsked, useMemory } from '../memory-context.tsx';
import { standingOf } from '../standing.ts';
import { useActions } from '../ui/actions.tsx';
import { Confirm } from '../ui/confirm.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Section } from '../ui/page.tsx';
import { Failed, Refused } from '../ui/refused.tsx';
import { useToast } from '../ui/toast.tsx';
import { useFreshLook, useWatched } from '../watched.ts';

type Asking = 'rotate' | 'recovery' | undefined;

/** Where the key stands, and what its owner can do with it. */
export function KeySection() {
  const { ask } = useMemory();
  const { say } = useToast();
  const lookAgain = useFreshLook();
  const isAsked = useIsAsked();
  const { data: status, error } = useAsked('status', {});
  const { data: backups } = useWatched('backups', {}, () => undefined);
  const [asking, setAsking] = useState<Asking>();
  const [words, setWords] = useState<string>();
  const locking = useDoing();
  const turning = useDoing();
  const making = useDoing();
  const key = status?.store.key;
  const rotation = status?.store.rotation;
  const here = key?.at === 'ok';
  const lock = (): void =>
    void locking.run(async () => {
      await ask(here ? 'lock' : 'unlock', {});
      lookAgain();
    });
  const rotate = (): void => {
    setAsking(undefined);
    // It goes on while its owner looks elsewhere, and the banner says how far it is.
    void turning.run(async () => {
      const turned = ask('rotateKey', {});
      lookAgain();
      await turned;
      say({ text: 'Everything is under a new key.' });
      lookAgain();
    });
  };
  const makeRecoveryKey = async (): Promise<void> => {
    setWords((await ask('makeRecoveryKey', {})).recovery_key);
    lookAgain();
  };
  useActions(here ? [{ name: 'Lock the memory', run: lock }] : []);
  return (
    <Section title="Key">
      <Refused error={error} />
      {key && (
        <p role="status">
          {standingOf(key).title}. {standingOf(key).says}
        </p>
      )}
      {key && key.at !== 'ephemeral' && (
        <>
          <p className="quiet">
            {backups?.recovery_key
              ? 'There is a recovery key. Making another makes that one useless.'
              : 'There is no recovery key yet: without the key, nobody could open this memory.'}
          </p>
          <p className="buttons">
            <button type="button" className="button" disabled={locking.busy} onClick={lock}>
              {here ? 'Lock' : 'Unlock'}
            </button>
            {here && (
              <>
                <button
                  type="button"
                  className="button"
                  onClick={() => (isAsked ? void making.run(makeRecoveryKey) : setAsking('recovery'))}
                >
                  Make a recovery key…
                </button>
                <button
                  type="button"
                  className="button"
                  disabled={turning.busy || rotation?.at === 'running'}
                  onClick={() => (isAsked ? rotate() : setAsking('rotate'))}
                >
                  Rotate the key…
                </button>
              </>
            )}
          </p>
        </>
      )}
      {rotation?.at === 'running' && (
        <progress aria-label="Entries under the new key" max={Math.max(1, rotation.of)} value={rotation.done} />
      )}
      <Failed text={locking.failure ?? turning.failure ?? making.failure} />
      {asking === 'rotate' && (
        <Confirm
          title="Rotate the key?"
          act="Rotate"
          harmless
          run={() => Promise.resolve(rotate())}
          close={() => setAsking(undefined)}
        >
          <p>
            Everything is sealed anew under a new key, while the memory stays in use. Backups that were made before still need the
            old key or the recovery key, which stays good.
          </p>
        </Confirm>
      )}
      {asking === 'recovery' && (
        <Confirm title="Make a recovery key?" act="Make" harmless run={makeRecoveryKey} close={() => setAsking(undefined)}>
          <p>
            It opens this memory when its own key is lost, also on another computer. It is shown once: have something to write at
            hand.
          </p>
          {backups?.recovery_key && <p className="warned">The one that you have now will be of no use any more.</p>}
        </Confirm>
      )}
      {words !== undefined && (
        <Dialog title="The recovery key" close={() => setWords(undefined)}>
          <p>Write it down now and keep it in a safe place: it is shown this once and kept nowhere.</p>
          <Copyable text={words} name="the recovery key" />
          <form method="dialog" className="buttons">
            <button className="button primary">I have written it down</button>
          </form>
        </Dialog>
      )}
    </Section>
  );
}
