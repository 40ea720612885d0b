import { needsConsent } from '../../src/contract/operations.ts';
import { operations } from '../../src/contract/operations.ts';
import { renderTable } from './table.ts';

/** Renders every operation with its effect from the table of operations. */
export function renderEffects(): string {
  const rows = Object.entries(operations).map(([name, { effect }]): [string, string, string] => {
    if (typeof effect === 'string') return [`\`${name}\``, `\`${effect}\``, needsConsent(effect) ? 'yes' : ''];
    const { condition, effect: then, otherwise } = effect;
    return [`\`${name}\``, `\`${then}\` ${condition}, else \`${otherwise}\``, needsConsent(then) ? condition : ''];
  });
  return `# Effects

<!-- Written by npm run docs from the table of operations. -->

Every operation names what it can destroy or give away. On the desktop, the window's owner agrees in a dialog of the system before an
effect that needs their consent. It makes no difference whether the operation is called directly, by a pack or by a pipeline. Agents
are never asked: the scopes of their token decide. [ADR 64](adr/0064-consent-belongs-to-effects.md) has the reasons.

| effect | meaning |
| --- | --- |
| \`none\` | Changes nothing that outlives the call. |
| \`reversible\` | Changes something that can be changed back. |
| \`runs\` | Runs packs. A pack that sends requests to other servers \`discloses\`, and an own pack that deletes \`destroys\`. When a pack calls an operation of the memory, the effect of that operation applies. |
| \`destroys\` | Deletes or replaces something that cannot be brought back. |
| \`grants\` | Gives access that a program or a person does not have. |
| \`discloses\` | Sends data to another program or machine. |
| \`executes\` | Lets a program start that could not be started before. |

${renderTable(['operation', 'effect', 'asks for consent'], rows)}
`;
}
