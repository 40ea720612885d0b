import { useOperation } from '../memory-context.tsx';
import { usePolledOperation } from '../polling.ts';
import { LoadError } from '../ui/errors.tsx';
import { Page, Section } from '../ui/page.tsx';
import { AtLoginSection } from './at-login.tsx';
import { KeySection } from './key.tsx';
import { SafetySection } from './safety.tsx';
import { SessionsSection } from './sessions.tsx';
import { SettingsList } from './settings-list.tsx';
import { sizeOf } from './size.ts';
import { TransferSection } from './transfer.tsx';
import { VersionSection } from './version.tsx';

export function SettingsPage() {
  const { data, error } = usePolledOperation('settings', {});
  const { data: status } = useOperation('status', {});
  return (
    <Page title="Settings">
      <KeySection />
      {status && status.store.kept !== 'memory' && <SafetySection />}
      <TransferSection />
      <AtLoginSection />
      <SessionsSection />
      <LoadError error={error} />
      {data && (
        <Section title="Space">
          <Usage name="Facts" {...data.quota.facts} show={(count) => count.toLocaleString()} />
          <Usage name="Size, including earlier versions" {...data.quota.bytes} show={sizeOf} />
        </Section>
      )}
      {data && <SettingsList settings={data} />}
      {data && <VersionSection place={data.updates} />}
    </Page>
  );
}

interface UsageProps {
  readonly name: string;
  readonly used: number;
  readonly most: number;
  readonly show: (amount: number) => string;
}

function Usage({ name, used, most, show }: UsageProps) {
  return (
    <div>
      <p>
        {name}: {show(used)} of {show(most)}
      </p>
      <meter aria-label={name} max={most} value={Math.min(used, most)} />
    </div>
  );
}
