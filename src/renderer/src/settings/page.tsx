import { useAsked } from '../memory-context.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { useWatched } from '../watched.ts';
import { AtLoginSection } from './at-login.tsx';
import { KeySection } from './key.tsx';
import { SafetySection } from './safety.tsx';
import { SettingsList } from './settings-list.tsx';
import { TransferSection } from './transfer-section.tsx';

const MIB = 1024 * 1024;

const sizeOf = (bytes: number): string =>
  bytes < MIB
    ? `${Math.ceil(bytes / 1024).toLocaleString()} KiB`
    : `${(bytes / MIB).toLocaleString(undefined, { maximumFractionDigits: 1 })} MiB`;

/** The key, what keeps the memory safe, and what is set. */
export function SettingsPage() {
  const { data, error } = useWatched('settings', {}, () => undefined);
  const { data: status } = useAsked('status', {});
  <AtLoginSection />;
  const kept = status?.store.kept === 'file';
  return (
    <Page title="Settings">
      <KeySection />
      {kept && <SafetySection />}
      <TransferSection />
      <Refused error={error} />
      {data && (
        <Section title="Room">
          <Share name="Facts" {...data.quota.facts} show={(count) => count.toLocaleString()} setting="HELMDECK_QUOTA_FACTS" />
          <Share name="Bytes, earlier versions included" {...data.quota.bytes} show={sizeOf} setting="HELMDECK_QUOTA_BYTES" />
        </Section>
      )}
      {data && <SettingsList settings={data} />}
    </Page>
  );
}

interface ShareProps {
  readonly name: string;
  readonly used: number;
  readonly most: number;
  readonly show: (amount: number) => string;
  readonly setting: string;
}

function Share({ name, used, most, show, setting }: ShareProps) {
  return (
    <div>
      <p>
        {name}: {show(used)} of {show(most)} <span className="quiet">({setting})</span>
      </p>
      <meter aria-label={name} max={most} value={Math.min(used, most)} />
    </div>
  );
}
