import { cpSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/core/time/clock.ts';
import { BundledEmbedder } from '../../../src/main/meaning/bundled-embedder.ts';
import { findModel } from '../../../src/main/meaning/bundled-model.ts';
import { launchWithNode } from '../../../src/main/meaning/launch-model.ts';
import type { FromModel, LaunchModel, ModelFiles, ModelProcess, ToModel } from '../../../src/main/meaning/model-messages.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** The files of the real model. */
function installed(): ModelFiles {
  const files = findModel();
  if (!files) throw new Error('The model is not installed.');
  return files;
}

/** A model in a folder of the test, whose file the test damages. */
export function copyModel(damage: { readonly [Name in keyof ModelFiles]?: 'truncated' | 'replaced' }): ModelFiles {
  const folder = tempFolder();
  const copied = Object.entries(installed()).map(([name, file]: [string, ModelFiles[keyof ModelFiles]]) => {
    const path = join(folder, basename(file.path));
    cpSync(file.path, path);
    const how = damage[name as keyof ModelFiles];
    if (how === 'truncated') truncateSync(path, 1000);
    if (how === 'replaced') writeFileSync(path, 'process.exit(0)');
    return [name, { ...file, path }];
  });
  return Object.fromEntries(copied);
}

type EmbedderOptions = Partial<ConstructorParameters<typeof BundledEmbedder>[0]>;

/** A bundled model that ends with the test. */
export function openBundled(options: EmbedderOptions = {}) {
  const changes: (string | undefined)[] = [];
  const embedder = new BundledEmbedder({
    clock: systemClock,
    files: installed(),
    launch: launchWithNode,
    onChange: () => void changes.push(embedder.model?.id),
    ...options,
  });
  onTestFinished(() => embedder[Symbol.dispose]());
  return { embedder, changes };
}

/** A process that the test answers for, instead of a real model. */
export interface FakeProcess {
  readonly received: readonly ToModel[];
  /** The texts received so far. */
  readonly texts: readonly string[];
  readonly killed: boolean;
  answer(message: FromModel): void;
  /** Answers the oldest text that has no vector yet. */
  vector(): void;
  exit(): void;
}

/** Starts fake processes, which load at once. */
export function fakeModel(): { readonly launch: LaunchModel; readonly started: FakeProcess[] } {
  const started: FakeProcess[] = [];
  const launch: LaunchModel = (_path, _files, on): ModelProcess => {
    const received: ToModel[] = [];
    let killed = false;
    const exit = (): void => {
      if (killed) return;
      killed = true;
      on.exit();
    };
    started.push({
      received,
      exit,
      answer: on.message,
      vector: () => on.message({ is: 'vector', vector: Float32Array.of(received.length, 0) }),
      get texts() {
        return received.flatMap((message) => ('text' in message ? [message.text] : []));
      },
      get killed() {
        return killed;
      },
    });
    return {
      send(message) {
        received.push(message);
        if ('files' in message) on.message({ is: 'loaded' });
      },
      kill: exit,
    };
  };
  return { launch, started };
}
