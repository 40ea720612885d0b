import type { ComponentType } from 'react';
import { ActivityPage } from './activity/page.tsx';
import { ConnectPage } from './connect/page.tsx';
import { EmbeddingsPage } from './embeddings/page.tsx';
import { LearnedPage } from './learned/page.tsx';
import type { Place } from './place.ts';
import { SettingsPage } from './settings/page.tsx';

type At = Exclude<Place['at'], 'facts' | 'packs'>;

/** What stands beside the facts. */
const PAGES: Readonly<Record<At, ComponentType>> = {
  activity: ActivityPage,
  learned: LearnedPage,
  clients: ConnectPage,
  embeddings: EmbeddingsPage,
  settings: SettingsPage,
};

export function PageAt({ at }: { at: At }) {
  const Shown = PAGES[at];
  return <Shown />;
}
