import { useAsked } from '../memory-context.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Refused } from '../ui/refused.tsx';
import { useWatched } from '../watched.ts';
import { AtLoginSection } from './at-login.tsx';
import { KeySection } from './key.tsx';
import { SafetySection } from './safety.tsx';
import { SessionsSection } from './sessions-section.tsx';
import { SettingsList } from './settings-list.tsx';
import { sizeOf } from './size.ts';
import { TransferSection } from './transfer-section.tsx';
import { VersionSection } from './version-section.tsx';

/** The key, what keeps the memory safe, what is set, and which version this is. */
export function SettingsPage() {
  const { data, error } = useWatched('settings', {}, () => undefined);
  const { data: status } = useAsked('status', {});
  const kept = status?.store.kept === 'file';
  return (
    <Page title="Settings">
      <KeySection />
      {kept && <SafetySection />}
      <TransferSection />
      <AtLoginSection />
      <SessionsSection />
      <Refused error={error} />
      {data && (
        <Section title="Room">
          <Share name="Facts" {...data.quota.facts} show={(count) => count.toLocaleString()} />
          <Share name="Their size, earlier versions included" {...data.quota.bytes} show={sizeOf} />
        </Section>
      )}
      {data && <SettingsList settings={data} />}
      {data && <VersionSection place={data.updates} />}
    </Page>
  );
}

interface ShareProps {
  readonly name: string;
  readonly used: number;
  readonly most: number;
  readonly show: (amount: number) => string;
}

function Share({ name, used, most, show }: ShareProps) {
  return (
    <div>
      <p>
        {name}: {show(used)} of {show(most)}
      </p>
      <meter aria-label={name} max={most} value={Math.min(used, most)} />
    </div>
  );
}
