import { type FormEvent, useState } from 'react';
import type { ClientRow, ConnectionPlan, ConnectReceipt } from '../../../contract/client.ts';
import { useDoing } from '../doing.ts';
import { useMemory } from '../memory-context.tsx';
import { Copyable } from '../ui/copyable.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Failed } from '../ui/refused.tsx';
import { TextField } from '../ui/text-field.tsx';
import { useFreshLook, useWatched } from '../watched.ts';
import { Bundle } from './bundle.tsx';

/** Shows what would be changed, changes it when that is meant, and says whether it works. */
export function Connecting({ client, close }: { client: ClientRow; close: () => void }) {
  const { id, name, state } = client;
  const open = useMemory();
  const lookAgain = useFreshLook();
  const { busy, failure, run } = useDoing({ subject: 'Memory' });
  const [subject, setSubject] = useState(client.subject ?? open.subject);
  const [receipt, setReceipt] = useState<ConnectReceipt>();
  const asked = useWatched('planConnection', { client: id }, () => undefined, receipt === undefined);
  // What was true when it was last looked at need not be now.
  const plan = asked.isFetching || asked.isError ? undefined : asked.data;
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    void run(async () => {
      try {
        setReceipt(await open.ask('connectClient', { client: id, subject, ...(plan && { basis: plan.basis }) }));
      } finally {
        // What was shown may be what it was refused for.
        lookAgain();
      }
    });
  };
  if (receipt) return <Done name={name} receipt={receipt} close={close} />;
  return (
    <Dialog title={`${state === 'not_connected' ? 'Connect' : 'Repair'} ${name}`} close={close} className="wide">
      <form className="fields" onSubmit={onSubmit}>
        <Failed text={asked.error?.message} />
        {plan && <Changes plan={plan} name={name} />}
        {id === 'claude-desktop' && <Bundle />}
        <TextField
          label="Memory"
          hint="Agents with the same name here share one memory. Another name is a memory of its own."
          needed
          value={subject}
          change={setSubject}
        />
        <Failed text={failure} />
        <p className="quiet" role="status">
          {busy ? 'Connecting, and trying whether it works…' : ''}
        </p>
        <p className="buttons">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button className="button primary" disabled={busy || !plan}>
            {state === 'not_connected' ? 'Connect' : 'Repair'}
          </button>
        </p>
      </form>
    </Dialog>
  );
}

function Changes({ plan: { files, commands, link }, name }: { plan: ConnectionPlan; name: string }) {
  return (
    <>
      {files.length === 0 && <p>Its configuration says what it should already; it gets a new token.</p>}
      {files.map(({ path, created, lines }) => (
        <div key={path}>
          <p>
            {created ? 'A new file' : 'This changes'} <span className="address">{path}</span>
            {created ? '' : ', and nothing else in it'}:
          </p>
          <pre className="output difference">
            {lines.map(({ sign, text }, at) => {
              const line = `${sign} ${text}\n`;
              // They neither move nor go while they are shown.
              const key = `${at} ${line}`;
              if (sign === '+') return <ins key={key}>{line}</ins>;
              return sign === '-' ? <del key={key}>{line}</del> : <span key={key}>{line}</span>;
            })}
          </pre>
        </div>
      ))}
      {link !== undefined && (
        <details>
          <summary>For another profile of {name}</summary>
          <p className="quiet">Once it is connected, open this link in a browser; it holds no token.</p>
          <Copyable text={link} name="the link" />
        </details>
      )}
      {commands.length > 0 && (
        <p className="quiet">
          It is done by {name} itself: <code>{commands.map(({ args }) => args.slice(0, 2).join(' ')).join(', ')}</code>. Should it
          change more than this, the rest is taken back.
        </p>
      )}
      <p className="quiet">
        {files.some(({ holds_token: holdsToken }) => holdsToken)
          ? 'It comes to hold a token that opens no memory, and then nobody but you may read it.'
          : 'No token stands in it: that lies in a file of its own that only you can read.'}
      </p>
    </>
  );
}

function Done({ name, receipt, close }: { name: string; receipt: ConnectReceipt; close: () => void }) {
  const { subject, verified, afterwards } = receipt;
  return (
    <Dialog title={`${name} is connected`} close={close}>
      {verified.works ? (
        <p>
          Tried by what it starts itself: it came through to the memory of <bdi>{subject}</bdi>, and is offered {verified.tools}{' '}
          tools.
        </p>
      ) : (
        <p className="warned">It was put there, but does not come through yet. {verified.why}</p>
      )}
      {afterwards !== undefined && <p>{afterwards}</p>}
      <form method="dialog" className="buttons">
        <button className="button primary">Done</button>
      </form>
    </Dialog>
  );
}
