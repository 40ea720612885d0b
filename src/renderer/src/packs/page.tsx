import { useAsked } from '../memory-context.tsx';
import type { OpenedPack, Place } from '../place.ts';
import type { Action } from '../ui/action.ts';
import { useActions } from '../ui/actions.tsx';
import { counted } from '../ui/forget-scope.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { Credentials } from './credentials.tsx';
import { PackPage } from './pack.tsx';
import { PipelinePage } from './pipeline.tsx';

interface Props {
  readonly opened: OpenedPack | undefined;
  readonly go: (place: Place) => void;
}

/** What agents can run here, and the owner as well. */
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

const NO_ACTIONS: readonly Action[] = [];

function Catalogue({ open }: { open: (opened: OpenedPack) => void }) {
  const { data, error } = useAsked('packs', {});
  const { data: shelf, error: shelfError } = useAsked('pipelines', {});
  return (
    <Page title="Packs" says="Tasks that every agent connected here can run, and you as well. They run on this computer.">
      <Refused error={error} />
      <ul className="plain">
        {data?.packs.map(({ name, title, description, own, unavailable }) => (
          <li key={name} className="line">
            <span>
              <button type="button" className="opener" onClick={() => open({ pack: name })}>
                <bdi>{title}</bdi>
              </button>{' '}
              <span className="quiet">
                {name}
                {own && ', your own'}
              </span>
              <br />
              <span className="quiet">
                <bdi>{description}</bdi>
              </span>
              {unavailable !== undefined && (
                <>
                  <br />
                  <span className="small warned">Cannot run at present: {unavailable}</span>
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
      {data?.skipped && (
        <Section title="Skipped">
          <p className="quiet">HELMDECK_PACKS lists them, and they could not be taken.</p>
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
        <Refused error={shelfError} />
        {shelf?.pipelines.length === 0 && (
          <p className="quiet">None yet. An agent makes one when it is told which packs to run one after the other.</p>
        )}
        <ul className="plain">
          {shelf?.pipelines.map(({ id, title, description, steps, client, by_owner, needs_adoption }) => (
            <li key={id} className="line">
              <span>
                <button type="button" className="opener" onClick={() => open({ pipeline: id })}>
                  <bdi>{title ?? id}</bdi>
                </button>{' '}
                <span className="quiet">
                  {id}, {counted(steps, 'step')}, by <bdi>{by_owner ? 'you' : client}</bdi>
                </span>
                {description !== undefined && (
                  <>
                    <br />
                    <span className="quiet">
                      <bdi>{description}</bdi>
                    </span>
                  </>
                )}
                {needs_adoption !== undefined && (
                  <>
                    <br />
                    <span className="small warned">{needs_adoption}</span>
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
      </Section>
      <Credentials />
    </Page>
  );
}
