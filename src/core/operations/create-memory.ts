import { clients } from './clients.ts';
import { credentials } from './credentials.ts';
import { embeddings } from './embeddings.ts';
import { facts } from './facts.ts';
import type { Memory, MemoryDeps } from './memory.ts';
import { packs } from './packs.ts';
import { pipelines } from './pipelines.ts';
import { previewImport } from './preview-import.ts';
import { search } from './search.ts';
import { settings } from './settings.ts';
import { transfer } from './transfer.ts';
import { undo } from './undo.ts';
import { updates } from './updates.ts';
import { upkeep } from './upkeep.ts';
import { views } from './views.ts';
import { windowSessions } from './window-sessions.ts';

export const createMemory = (deps: MemoryDeps): Memory => ({
  ...facts(deps),
  ...search(deps),
  ...views(deps),
  ...transfer(deps),
  ...previewImport(deps),
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
