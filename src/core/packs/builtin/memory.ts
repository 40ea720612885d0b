import * as z from 'zod';
import { FactInput, FactReceipt } from '../../../contract/fact.ts';
import { ForgetInput, ForgetReceipt, spellScope } from '../../../contract/forget.ts';
import { HeldReceipt } from '../../../contract/inbox.ts';
import type { Perform } from '../../operations/perform.ts';
import { definePack, type Pack } from '../pack.ts';

/** Packs that store and forget facts, for use in pipelines. They call the same operations as clients do. */
export const memoryPacks = (perform: Perform): readonly Pack[] => [
  definePack({
    name: 'helmdeck.memory_store',
    version: '1.0.0',
    title: 'Remember a fact',
    description: "Stores a fact for all of this person's agents, as the tool memory_store does.",
    intents: [
      'remember',
      'remember a preference',
      'remember a decision',
      'save a preference',
      'save a decision',
      'save for later',
      'keep a fact',
      'keep in mind',
      'note a convention',
      'make a note',
      'merk',
      'merke',
      'notiere',
      'retiens',
      'souviens-toi',
      'recuerda',
      'ricorda',
      'onthoud',
      'запомни',
    ],
    changes: 'adds',
    unaudited: true,
    get input() {
      return FactInput();
    },
    get output() {
      return z.union([FactReceipt(), HeldReceipt()]);
    },
    handler: ({ caller, input, callContext }) => perform(caller, 'remember', input, callContext),
  }),
  definePack({
    name: 'helmdeck.memory_forget',
    version: '1.0.0',
    title: 'Forget',
    description: 'Deletes facts permanently, as the tool memory_forget does.',
    intents: [
      'forget',
      'forget a fact',
      'delete from memory',
      'erase from memory',
      'remove a fact',
      'delete what you know',
      'vergiss',
      'oublie',
      'olvida',
      'dimentica',
      'vergeet',
      'забудь',
    ],
    changes: 'destroys',
    unaudited: true,
    get input() {
      return ForgetInput();
    },
    get output() {
      return z.union([ForgetReceipt(), HeldReceipt()]);
    },
    handler: ({ caller, input: { scope, dry_run }, callContext }) =>
      perform(caller, 'forget', { scope: spellScope(scope), dry_run }, callContext),
  }),
];
