import type { ClientVerification, ConnectionPlan } from '../../../contract/client.ts';
import { escapeControls } from '../layout.ts';

export const verificationLine = ({ works, why = '', tools }: ClientVerification): string =>
  works ? `Connection tested${tools === 0 ? '' : `: ${tools} tools`}.` : `The connection test failed. ${escapeControls(why)}`;

/** Returns the lines that show a plan before it is applied. */
export const planLines = ({ files, commands, afterwards, review }: ConnectionPlan): string[] => [
  ...files.flatMap(({ path, created, lines, holds_token: holdsToken }) => [
    `${escapeControls(path)}${created ? ' (new)' : ''}`,
    ...lines.map(({ sign, text }) => `  ${sign} ${escapeControls(text)}`),
    ...(holdsToken ? ['This file will contain the token, so only you will be allowed to read it.'] : []),
  ]),
  ...(files.length === 0 ? ['The configuration does not change. The agent gets a new token.'] : []),
  ...commands.map(({ program, args }) => `Runs: ${[program, ...args].map(escapeControls).join(' ')}`),
  ...(review === 'recorded' ? ['This records in the client that you have reviewed the hooks above.'] : []),
  ...(afterwards === undefined ? [] : [afterwards]),
];
