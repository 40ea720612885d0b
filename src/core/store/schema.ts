import type { Database } from 'better-sqlite3';
import { Failure } from '../../contract/failure.ts';
import { earlierForms, type Migration } from './migrations/index.ts';
import { Sqlite } from './sqlite.ts';

/** `exact` refuses every object that the migrations do not make. `our tables` ignores objects beside our tables. */
export type SchemaCheck = 'exact' | 'our tables';

interface SchemaObject {
  readonly type: string;
  /** In a damaged or edited file it may be missing. */
  readonly name: string | null;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** Names in a tampered file are the attacker's text, so only their beginning is shown. */
const NAME_CHARACTERS = 60;

/**
 * Lists how a file's schema differs from the schema that the migrations make. No seal covers the schema, and a trigger, view or
 * index can change what a statement reads or deletes: a trigger can bring back each row that a forget deletes.
 */
export function schemaDifferences(db: Database, steps: readonly Migration[], check: SchemaCheck = 'exact'): string[] {
  const version = db.pragma('user_version', { simple: true }) as number;
  const expected = new Map(schemaAt(steps, version).map((object) => [object.name, object]));
  const differences: string[] = [];
  for (const found of objectsOf(db)) {
    const wanted = expected.get(found.name);
    expected.delete(found.name);
    if (!wanted) differences.push(...(check === 'exact' ? [`it contains ${named(found)}`] : []));
    else if (!isSame(found, wanted) && (check === 'exact' || wanted.type === 'table'))
      differences.push(`${named(wanted)} was changed`);
  }
  for (const missing of expected.values())
    if (check === 'exact' || missing.type === 'table') differences.push(`${named(missing)} is missing`);
  if (check === 'our tables') return differences;
  // Purging reads pages by their type byte. A file with auto_vacuum has pages of a further kind, which it would overwrite.
  if (db.pragma('auto_vacuum', { simple: true }) !== 0) differences.push('auto_vacuum was turned on');
  if (db.pragma('encoding', { simple: true }) !== 'UTF-8') differences.push('its text encoding was changed');
  return differences;
}

/** Throws when the schema is not ours. */
export function requireSchema(db: Database, steps: readonly Migration[], check: SchemaCheck): void {
  const [first] = schemaDifferences(db, steps, check);
  if (first === undefined) return;
  throw new Failure(
    'store_unavailable',
    `The schema of this memory was changed outside Helmdeck Memory: ${first}. Restore a backup with: helmdeck-memory restore, or save what can be read with: helmdeck-memory salvage.`,
  );
}

function schemaAt(steps: readonly Migration[], version: number): readonly SchemaObject[] {
  const db = new Sqlite(':memory:');
  try {
    for (const apply of steps.slice(0, version)) apply(db);
    return objectsOf(db);
  } finally {
    db.close();
  }
}

const objectsOf = (db: Database): SchemaObject[] =>
  db.prepare('SELECT type, name, tbl_name, sql FROM main.sqlite_schema').all() as SchemaObject[];

const isSame = (found: SchemaObject, wanted: SchemaObject): boolean =>
  found.type === wanted.type && found.tbl_name === wanted.tbl_name && (found.sql === wanted.sql || isEarlierForm(found));

/** The text begins with the name, so an earlier form of one index is not accepted for another. */
const isEarlierForm = ({ name, sql }: SchemaObject): boolean =>
  sql !== null && sql.includes(` INDEX ${name} ON `) && earlierForms.has(sql);

const named = ({ type, name }: SchemaObject): string => `the ${type} ${JSON.stringify(name?.slice(0, NAME_CHARACTERS) ?? '')}`;
