import { bring } from './bring.ts';
import { clients } from './clients.ts';
import { credentials } from './credentials.ts';
import { embeddings } from './embeddings.ts';
import { facts } from './facts.ts';
import { find } from './find.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { packs } from './packs.ts';
import { pipelines } from './pipelines.ts';
import { settings } from './settings.ts';
import { transfer } from './transfer.ts';
import { undo } from './undo.ts';
import { updates } from './updates.ts';
import { upkeep } from './upkeep.ts';
import { views } from './views.ts';
import { windowSessions } from './window-sessions.ts';

export const createMemory = (deps: MemoryDeps): Memory => ({
  ...facts(deps),
  ...find(deps),
  ...views(deps),
  ...transfer(deps),
  ...bring(deps),
  ...packs(deps),
  ...credentials(deps),
  ...embeddings(deps),
  ...pipelines(deps),
  ...undo(deps),
  ...upkeep(deps),
  ...clients(deps),
  ...settings(deps),
  ...updates(deps),
  ...windowSessions(deps),
});
