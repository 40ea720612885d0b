import { useMemory } from '../memory-context.tsx';
import { useRefresh } from '../polling.ts';
import { Confirm } from '../ui/confirm.tsx';
import { type Report, sizeText } from './state.tsx';

interface Props {
  readonly report: Report;
  readonly close: () => void;
}

export function ApproveOllama({ report: { ollama, state }, close }: Props) {
  const { call } = useMemory();
  const refresh = useRefresh();
  const hash = ollama?.sha256;
  const approve = async (): Promise<void> => {
    if (hash !== undefined) await call('approveOllama', { hash });
    refresh();
  };
  return (
    <Confirm
      title="Allow Helmdeck Memory to start this Ollama?"
      button="Approve"
      harmless
      ready={hash !== undefined}
      run={approve}
      close={close}
    >
      <p>
        {state.at === 'unapproved' && state.changed
          ? 'This file differs from the file that you approved. If you did not update Ollama, do not approve this file.'
          : 'Helmdeck Memory will start only this exact file. You will be asked again if the file changes.'}
      </p>
      <dl className="pairs">
        <dt>Path</dt>
        <dd>
          <bdi className="address">{ollama?.path}</bdi>
        </dd>
        <dt>Size</dt>
        <dd>{ollama?.size?.toLocaleString()} bytes</dd>
        <dt>SHA-256</dt>
        <dd>
          <code>{hash}</code>
        </dd>
      </dl>
    </Confirm>
  );
}

export function DownloadModel({ report: { model, free }, close }: Props) {
  const { call } = useMemory();
  const refresh = useRefresh();
  const download = async (): Promise<void> => {
    await call('pullModel', {});
    refresh();
  };
  return (
    <Confirm title={`Download the model ${model.name}?`} button="Download" harmless run={download} close={close}>
      <p>
        {model.disk === undefined || model.memory === undefined
          ? 'The size of the model is unknown.'
          : `The model needs ${sizeText(model.disk)} of disk space and about ${sizeText(model.memory)} of RAM.`}{' '}
        {free.disk !== undefined && `Free disk space: ${sizeText(free.disk)}.`}{' '}
        {free.memory !== undefined && `Free RAM: ${sizeText(free.memory)}.`}
      </p>
      <p className="quiet">Ollama downloads the model from the internet. You can cancel the download and continue it later.</p>
    </Confirm>
  );
}
