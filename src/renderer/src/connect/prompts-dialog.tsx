import { useState } from 'react';
import type { ClientRow } from '../../../contract/client.ts';
import { useMemory } from '../memory-context.tsx';
import { useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { DialogButtons } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { AcceptChoice, CaptureChoice } from './choices.tsx';

/** Chooses whether facts are made from the owner's prompts to an agent (R-WIN-55). */
export function PromptsDialog({ client, close }: { client: ClientRow; close: () => void }) {
  const { id, name } = client;
  const { call } = useMemory();
  const refresh = useRefresh();
  const { busy, failure, submit } = useTask();
  const [capture, setCapture] = useState(client.capture ?? false);
  const [accept, setAccept] = useState(client.accept ?? false);
  const onSubmit = submit(async () => {
    await call('setCapture', { client: id, capture, accept: capture && accept });
    refresh();
    close();
  });
  return (
    <Dialog title={`Your prompts to ${name}`} close={close}>
      <form className="fields" onSubmit={onSubmit}>
        <CaptureChoice name={name} checked={capture} change={setCapture} />
        <AcceptChoice checked={capture && accept} change={setAccept} disabled={!capture} />
        <ErrorText text={failure} />
        <DialogButtons close={close}>
          <Button label="Save" type="submit" look="primary" disabled={busy} />
        </DialogButtons>
      </form>
    </Dialog>
  );
}
