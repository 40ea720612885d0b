import { useState } from 'react';
import type { ClientRow, ConnectionPlan, ConnectReceipt } from '../../../contract/client.ts';
import { useMemory } from '../memory-context.tsx';
import { usePolledOperation, useRefresh } from '../polling.ts';
import { useTask } from '../task.ts';
import { Button } from '../ui/button.tsx';
import { DialogButtons } from '../ui/confirm.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { CloseButton, Dialog } from '../ui/dialog.tsx';
import { ErrorText } from '../ui/errors.tsx';
import { Check, TextField } from '../ui/field.tsx';
import { Bundle } from './bundle.tsx';
import { CaptureChoice, EMBEDDINGS_ROW, HookChoice, type HookEvents, QuarantineChoice } from './choices.tsx';

/** Lets the owner choose what the client gets, shows the planned changes (R-WIN-55), connects the client, and reports whether the connection works. */
export function ConnectDialog({ client, close }: { client: ClientRow; close: () => void }) {
  const { id, name, state } = client;
  const { call, subject: openSubject } = useMemory();
  const refresh = useRefresh();
  const { busy, failure, submit } = useTask({ subject: 'Memory' });
  const [subject, setSubject] = useState(client.subject ?? openSubject);
  const [chosen, setChosen] = useState<HookEvents>();
  const [trust, setTrust] = useState(false);
  const [quarantine, setQuarantine] = useState(client.token?.quarantined ?? false);
  const [capture, setCapture] = useState(client.capture ?? false);
  const [receipt, setReceipt] = useState<ConnectReceipt>();
  const choice = { ...(chosen && { hooks: chosen }), ...(trust && { trust_hooks: trust }) };
  const planned = usePolledOperation('planConnection', { client: id, ...choice }, undefined, receipt === undefined);
  // Do not show a cached plan, because the configuration may have changed after the plan was made.
  const plan = planned.isFetching || planned.isError ? undefined : planned.data;
  const { possible_hooks: possible = [] } = planned.data ?? {};
  const hooks = planned.data?.hooks && (chosen ?? planned.data.hooks);
  const choose = (next: HookEvents): void => {
    setChosen(next);
    // The owner has not reviewed these hooks yet.
    setTrust(false);
  };
  const onSubmit = submit(async () => {
    try {
      // First, because an error of a later step would not be shown once the client is connected.
      if (capture !== (client.capture ?? false)) await call('setCapture', { client: id, capture });
      const basis = plan && { basis: plan.basis };
      setReceipt(await call('connectClient', { client: id, subject, quarantine, ...choice, ...basis }));
    } finally {
      // Refresh even after a failure, because an outdated plan causes a failure and must be replaced.
      refresh();
    }
  });
  if (receipt) return <Connected name={name} receipt={receipt} close={close} />;
  const verb = state === 'not_connected' ? 'Connect' : state === 'connected' ? 'Change' : 'Repair';
  return (
    <Dialog title={`${verb} ${name}`} close={close} className="wide">
      <form className="fields" onSubmit={onSubmit}>
        <TextField
          label="Memory"
          hint="Agents that use the same memory name share one memory. A new name starts a new memory."
          required
          value={subject}
          change={setSubject}
        />
        {hooks && <HookChoice name={name} possible={possible} events={hooks} change={choose} />}
        {id !== EMBEDDINGS_ROW && (
          <fieldset className="checks">
            <legend>What {name} stores</legend>
            <QuarantineChoice name={name} checked={quarantine} change={setQuarantine} />
            {hooks && possible.includes('prompt') && (
              <CaptureChoice name={name} checked={capture} change={setCapture} disabled={!hooks.includes('prompt')} />
            )}
          </fieldset>
        )}
        <ErrorText text={planned.error?.message} />
        {plan && <Changes plan={plan} name={name} />}
        {planned.data?.review !== undefined && <Review name={name} trust={trust} change={setTrust} />}
        {id === 'claude-desktop' && <Bundle />}
        <ErrorText text={failure} />
        <p className="quiet" role="status">
          {busy ? 'Connecting and testing…' : ''}
        </p>
        <DialogButtons close={close}>
          <Button label={verb} type="submit" look="primary" disabled={busy || !plan} />
        </DialogButtons>
      </form>
    </Dialog>
  );
}

/** Lets the owner record the review of the hooks. Shown below the hooks, because the owner must have seen them. */
function Review({ name, trust, change }: { name: string; trust: boolean; change: (trust: boolean) => void }) {
  return (
    <Check
      label={`Record in ${name} that I have reviewed these hooks`}
      hint={`Otherwise the hooks wait until ${name} has asked you to review them.`}
      checked={trust}
      change={change}
    />
  );
}

function Changes({ plan: { files, commands, link }, name }: { plan: ConnectionPlan; name: string }) {
  return (
    <>
      {files.length === 0 && <p>The configuration of {name} is already correct. Connecting only creates a new token.</p>}
      {files.map(({ path, created, lines }) => (
        <div key={path}>
          <p>
            {created ? 'Creates' : 'Changes'} <span className="address">{path}</span>:
          </p>
          <FileDiff lines={lines} />
        </div>
      ))}
      {link !== undefined && (
        <details>
          <summary>For another profile of {name}</summary>
          <p className="quiet">Connect first. Then open this link in a browser. The link contains no token.</p>
          <Copyable text={link} name="the link" />
        </details>
      )}
      {commands.length > 0 && (
        <p className="quiet">
          {name} makes this change itself, with <code>{commands.map(({ args }) => args.slice(0, 2).join(' ')).join(', ')}</code>.
          Any other change that {name} makes is undone.
        </p>
      )}
      <p className="quiet">
        {files.some(({ holds_token: holdsToken }) => holdsToken)
          ? 'The file will contain a token, so only you will be able to read the file. The token cannot open any memory.'
          : 'The token is stored in a separate file that only you can read.'}
      </p>
    </>
  );
}

export function FileDiff({ lines }: { lines: ConnectionPlan['files'][number]['lines'] }) {
  return (
    <pre className="output difference">
      {lines.map(({ sign, text }, index) => {
        const line = `${sign} ${text}\n`;
        const key = `${index} ${line}`;
        if (sign === '+') return <ins key={key}>{line}</ins>;
        return sign === '-' ? <del key={key}>{line}</del> : <span key={key}>{line}</span>;
      })}
    </pre>
  );
}

function Connected({ name, receipt, close }: { name: string; receipt: ConnectReceipt; close: () => void }) {
  const { subject, verified, afterwards } = receipt;
  return (
    <Dialog title={`${name} is connected`} close={close}>
      {verified.works ? (
        <p>
          Connection to the memory of <bdi>{subject}</bdi> tested: {verified.tools} tools.
        </p>
      ) : (
        <p className="warned">The configuration is in place, but the connection does not work yet. {verified.why}</p>
      )}
      {afterwards !== undefined && <p>{afterwards}</p>}
      <CloseButton label="Done" primary />
    </Dialog>
  );
}
