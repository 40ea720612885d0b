/** Exports of other memory programs in their own formats, about invented people. */

export const GRAPH = `{"type":"entity","name":"Mira_Okafor","entityType":"person","observations":["Bakes sourdough on Saturdays","Mira_Okafor speaks Igbo and Danish"]}
{"type":"entity","name":"Harbour Bakery","entityType":"cache","observations":["Opens at six"]}
{"type":"relation","from":"Mira_Okafor","to":"Harbour Bakery","relationType":"works_at"}
{"type":"entity","name":"Oven 3","entityType":"machine","observations":[]}
`;

/** The format of older servers, and of the response of `read_graph`. */
export const OLD_GRAPH = JSON.stringify(
  {
    entities: [{ name: 'Mira_Okafor', entityType: 'person', observations: ['Bakes sourdough on Saturdays', 7] }],
    relations: [{ from: 'Mira_Okafor', to: 'Harbour Bakery', relationType: 'works_at' }],
  },
  null,
  2,
);

export const INSTRUCTIONS = `# Tidewatch

A service that tells
when the harbour floods.

## Style
- Use tabs, never spaces
  - also in YAML comments
* Name tests after promises
<!-- ask Mira before changing this -->

## Commands
Check everything with:

\`\`\`sh
npm run check
\`\`\`

@docs/deploying.md

## Gemini Added Memories
- The person's cat is called Biscuit.
1. Deploys happen on Tuesdays

## Later
`;

export const NOTE = `---
title: Tide Tables
type: note
tags: [harbour, planning]
permalink: tide-tables
---
# Tide Tables
Kept since the first flood.

## Observations
- [method] High water is read at the east pier #readings #east-pier (since 2019)
- [ ] ask for the new gauge
- [cache] Old tables lie in the loft

## Relations
- relates_to [[Harbour Bakery]] (it floods first)
- [[Flood Wall]]
`;

export const CHATGPT = `Saved memories

Is learning to play the nyckelharpa.

Prefers recipes in grams:
- never cups
- Celsius too
[2025-03-14] - Lives on a houseboat in Aarhus.
Manage
`;

export const CLAUDE = `**Work context**

Mira runs a small bakery and writes its software herself.

**Brief history**

*Recent months*

Built a flood alarm from a doorbell.

Earlier context

Was a ship's cook.
`;
