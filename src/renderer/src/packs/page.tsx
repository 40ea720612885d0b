import type { ReactNode } from 'react';
import { useOperation } from '../memory-context.tsx';
import type { OpenedPack, Place } from '../place.ts';
import { counted } from '../time.ts';
import type { Action } from '../ui/action.ts';
import { useActions } from '../ui/actions.tsx';
import { Button } from '../ui/button.tsx';
import { LoadError } from '../ui/errors.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Credentials } from './credentials.tsx';
import { PackPage } from './pack.tsx';
import { PipelinePage } from './pipeline.tsx';

interface Props {
  readonly opened: OpenedPack | undefined;
  readonly go: (place: Place) => void;
}

const NO_ACTIONS: readonly Action[] = [];

export function PacksPage({ opened, go }: Props) {
  const back = (): void => go({ at: 'packs' });
  useActions(opened === undefined ? NO_ACTIONS : [{ name: 'Back to all packs', keys: ['Escape'], run: back }]);
  if (opened === undefined) return <Catalogue open={(next) => go({ at: 'packs', opened: next })} />;
  return 'pack' in opened ? (
    <PackPage key={opened.pack} name={opened.pack} back={back} />
  ) : (
    <PipelinePage key={opened.pipeline} id={opened.pipeline} back={back} />
  );
}

function Catalogue({ open }: { open: (opened: OpenedPack) => void }) {
  const { data, error } = useOperation('packs', {});
  const { data: catalogue, error: pipelinesError } = useOperation('pipelines', {});
  return (
    <Page title="Packs" description="Tasks that you and your connected agents can run. All packs run on this computer.">
      <LoadError error={error} />
      <ul className="plain">
        {data?.packs.map(({ name, title, description, own, unavailable }) => (
          <Item
            key={name}
            title={title}
            open={() => open({ pack: name })}
            about={own ? `${name}, your own pack` : name}
            description={description}
            problem={unavailable === undefined ? undefined : `Can't run: ${unavailable}`}
          />
        ))}
      </ul>
      {data?.skipped && (
        <Section title="Skipped">
          <p className="quiet">HELMDECK_PACKS lists these packs, but they could not be loaded.</p>
          <ul className="plain">
            {data.skipped.map(({ name, why }) => (
              <li key={name} className="line">
                <bdi>{name}</bdi>
                <span className="small warned">{why}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Pipelines">
        <LoadError error={pipelinesError} />
        {catalogue?.pipelines.length === 0 && (
          <p className="quiet">
            No pipelines yet. Tell an agent which packs to run one after another, and it creates a pipeline.
          </p>
        )}
        <ul className="plain">
          {catalogue?.pipelines.map(({ id, title, description, steps, client, by_owner: byOwner, needs_adoption: problem }) => (
            <Item
              key={id}
              title={title ?? id}
              open={() => open({ pipeline: id })}
              about={
                <>
                  {id}, {counted(steps, 'step')}, by <bdi>{byOwner ? 'you' : client}</bdi>
                </>
              }
              description={description}
              problem={problem}
            />
          ))}
        </ul>
      </Section>
      <Credentials />
    </Page>
  );
}

interface ItemProps {
  readonly title: string;
  readonly open: () => void;
  readonly about: ReactNode;
  readonly description: string | undefined;
  readonly problem: string | undefined;
}

function Item({ title, open, about, description, problem }: ItemProps) {
  return (
    <li className="line">
      <span>
        <Button label={<bdi>{title}</bdi>} look="link" onClick={open} /> <span className="quiet">{about}</span>
        {description !== undefined && (
          <>
            <br />
            <span className="quiet">
              <bdi>{description}</bdi>
            </span>
          </>
        )}
        {problem !== undefined && (
          <>
            <br />
            <span className="small warned">{problem}</span>
          </>
        )}
      </span>
    </li>
  );
}
