import type pg from 'pg';
import { Failure } from '../../../contract/failure.ts';
import type { RunQuery } from './database.ts';
import { EXPECTED_SCHEMA } from './expected-schema.ts';

/** Oldest supported version of PostgreSQL. Security updates for earlier versions have ended. */
const OLDEST_SERVER = 140_000;

/**
 * The first schema. Stored unencrypted: namespace, kind, category, times, sizes and a keyed hash of the key. Everything else of an
 * entry is inside `sealed`.
 */
const ENTRIES = `
  CREATE TABLE schema_version (version integer NOT NULL);
  INSERT INTO schema_version VALUES (1);

  -- One row. A writer locks it first, so the commits of all processes have one order, and the change number has no gap.
  CREATE TABLE state (
    one boolean PRIMARY KEY CHECK (one),
    change bigint NOT NULL,
    last_row bigint NOT NULL,
    last_namespace bigint NOT NULL,
    last_tombstone bigint NOT NULL
  );
  INSERT INTO state VALUES (true, 0, 0, 0, 0);

  -- One row for each commit. The mark tells whether a commit whose answer was lost took place.
  CREATE TABLE change_log (
    number bigint PRIMARY KEY,
    mark bytea NOT NULL UNIQUE,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stored bigint[] NOT NULL,
    deleted bigint[] NOT NULL,
    topics text[] NOT NULL
  );

  -- A value is a sealed secret, or a plain text that holds no secret.
  CREATE TABLE meta (
    name text COLLATE "C" PRIMARY KEY,
    secret bytea,
    plain text,
    CHECK ((secret IS NULL) <> (plain IS NULL))
  );

  CREATE TABLE master_key (
    id bytea PRIMARY KEY,
    role text NOT NULL UNIQUE CHECK (role IN ('current', 'retiring')),
    proof bytea NOT NULL,
    source text NOT NULL,
    segment bigint NOT NULL
  );

  CREATE TABLE namespace (
    id bigint PRIMARY KEY,
    subject text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    UNIQUE (subject, session)
  );

  -- kind: 1 fact, 2 history (an earlier version of a fact), 3 audit, 4 cache, 5 pack, 6 activity
  CREATE TABLE entry (
    number bigint PRIMARY KEY,
    namespace bigint NOT NULL,
    kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 6),
    key_hash bytea NOT NULL,
    category text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    sealed bytea NOT NULL
  );
  -- Encrypted bytes cannot be compressed.
  ALTER TABLE entry ALTER COLUMN sealed SET STORAGE EXTERNAL;
  -- The hash comes first, so that no other index looks as good before the server has statistics.
  CREATE UNIQUE INDEX entry_key ON entry (key_hash, namespace, kind) WHERE kind <> 2 AND kind <> 6;
  CREATE INDEX entry_version ON entry (key_hash, namespace, updated_at) WHERE kind = 2;
  CREATE INDEX entry_newest ON entry (namespace, kind, updated_at, number) WHERE kind <> 2;
  CREATE INDEX entry_category ON entry (namespace, kind, category, updated_at, number) WHERE kind <> 2 AND kind <> 6;
  CREATE INDEX entry_expiry ON entry (namespace, kind, expires_at, number);

  -- Rows and sealed bytes for each namespace and kind. The triggers below count every change, so quotas need not read all rows.
  CREATE TABLE usage (
    namespace bigint NOT NULL,
    kind smallint NOT NULL,
    rows bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (namespace, kind)
  );
  CREATE FUNCTION count_inserted() RETURNS trigger LANGUAGE plpgsql AS $body$
  BEGIN
    INSERT INTO usage SELECT namespace, kind, count(*), sum(octet_length(sealed)) FROM inserted GROUP BY namespace, kind
      ON CONFLICT (namespace, kind) DO UPDATE SET rows = usage.rows + excluded.rows, bytes = usage.bytes + excluded.bytes;
    RETURN NULL;
  END $body$;
  CREATE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql AS $body$
  BEGIN
    UPDATE usage SET rows = usage.rows - gone.rows, bytes = usage.bytes - gone.bytes
      FROM (SELECT namespace, kind, count(*) AS rows, sum(octet_length(sealed)) AS bytes FROM deleted GROUP BY namespace, kind) AS gone
      WHERE usage.namespace = gone.namespace AND usage.kind = gone.kind;
    RETURN NULL;
  END $body$;
  CREATE FUNCTION count_updated() RETURNS trigger LANGUAGE plpgsql AS $body$
  BEGIN
    UPDATE usage SET bytes = usage.bytes + sizes.bytes
      FROM (
        SELECT namespace, kind, sum(bytes) AS bytes FROM (
          SELECT namespace, kind, octet_length(sealed) AS bytes FROM inserted
          UNION ALL SELECT namespace, kind, -octet_length(sealed) FROM deleted
        ) AS each GROUP BY namespace, kind
      ) AS sizes
      WHERE usage.namespace = sizes.namespace AND usage.kind = sizes.kind AND sizes.bytes <> 0;
    RETURN NULL;
  END $body$;
  CREATE TRIGGER entry_inserted AFTER INSERT ON entry
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION count_inserted();
  CREATE TRIGGER entry_deleted AFTER DELETE ON entry
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION count_deleted();
  CREATE TRIGGER entry_updated AFTER UPDATE ON entry
    REFERENCING OLD TABLE AS deleted NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION count_updated();

  CREATE TABLE tombstone (
    number bigint PRIMARY KEY,
    at bigint NOT NULL,
    trusted bigint NOT NULL,
    hash bytea,
    subject text COLLATE "C",
    session text COLLATE "C",
    kind smallint,
    category text COLLATE "C",
    CHECK ((hash IS NULL) <> (subject IS NULL))
  );
  CREATE INDEX tombstone_age ON tombstone (at);

  CREATE TABLE revoked_token (
    id text COLLATE "C" PRIMARY KEY,
    expires_at bigint NOT NULL
  );
`;

/** All migrations, applied in order. Never edit a migration that was released; add another migration instead. */
const MIGRATIONS: readonly string[] = [ENTRIES];

/** Lists everything in the schema that could change what a statement reads, writes or deletes. */
const OBJECTS = `
  SELECT 'table ' || c.relname::text || ' ' || c.relkind::text || ' ' || coalesce((
      SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
          || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''), ', ' ORDER BY a.attnum)
        FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '')
      || CASE WHEN c.relrowsecurity THEN ' with row security' ELSE '' END AS object
    FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'v', 'm', 'f', 'p', 'S')
  UNION ALL
  SELECT 'index ' || replace(pg_get_indexdef(i.indexrelid), quote_ident(n.nspname) || '.', '')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.oid = $1::regnamespace
  UNION ALL
  SELECT 'constraint ' || c.conrelid::regclass::text || ' ' || pg_get_constraintdef(c.oid)
    FROM pg_constraint c WHERE c.connamespace = $1::regnamespace AND c.contype <> 'n'
  UNION ALL
  SELECT 'trigger ' || replace(pg_get_triggerdef(t.oid), quote_ident(n.nspname) || '.', '') || ' ' || t.tgenabled::text
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.oid = $1::regnamespace AND NOT t.tgisinternal
  UNION ALL
  SELECT 'function ' || p.proname::text || ' ' || md5(p.prosrc) FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
  UNION ALL
  SELECT 'rule ' || r.rulename::text FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
    WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'
  ORDER BY 1`;

/** Checks the server, and creates or migrates the tables. Nothing is written before all checks have passed. */
export async function prepareSchema(client: pg.Client, run: RunQuery, schema: string): Promise<void> {
  await requireServer(run);
  await client.query('BEGIN');
  try {
    // Two processes that start together must not both create the tables.
    await run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`helmdeck-memory schema ${schema}`]);
    const found = await versionOf(run, schema);
    if (found > MIGRATIONS.length) {
      throw unusable(
        `The database was written by a newer version of Helmdeck Memory (schema ${found}; this version supports up to ${MIGRATIONS.length}); update Helmdeck Memory. Nothing was changed.`,
      );
    }
    if (found === 0) await createSchema(client, run, schema);
    for (const sql of MIGRATIONS.slice(found)) await client.query(sql);
    if (found < MIGRATIONS.length) await client.query(`UPDATE schema_version SET version = ${MIGRATIONS.length}`);
    await requireObjects(run, schema);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** Creates the schema unless an administrator has created it, because a role needs no right to create schemas then. */
async function createSchema(client: pg.Client, run: RunQuery, schema: string): Promise<void> {
  const [found] = await run('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  if (!found) await client.query(`CREATE SCHEMA "${schema}"`);
}

async function requireServer(run: RunQuery): Promise<void> {
  const [server] = await run<Record<string, string>>(
    `SELECT current_setting('server_version_num') AS version, current_setting('server_version') AS name,
       current_setting('synchronous_commit') AS commit, current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS pages, current_setting('server_encoding') AS encoding,
       pg_is_in_recovery()::text AS standby`,
  );
  if (!server) throw unusable('The database server gave no answer about its settings.');
  if (Number(server['version']) < OLDEST_SERVER) {
    throw unusable(`PostgreSQL ${server['name']} is too old. Use PostgreSQL ${OLDEST_SERVER / 10_000} or later.`);
  }
  if (server['standby'] === 'true')
    throw unusable('This database server is a read-only standby. Use the address of the primary.');
  if (server['encoding'] !== 'UTF8') {
    throw unusable(`The database uses the encoding ${server['encoding']}. Create a database with the encoding UTF8.`);
  }
  for (const [name, value] of [
    ['synchronous_commit', server['commit']],
    ['fsync', server['fsync']],
    ['full_page_writes', server['pages']],
  ] as const) {
    if (value !== 'off') continue;
    throw unusable(
      `The database server can lose acknowledged writes, because ${name} is off. Turn it on, and restart the server.`,
    );
  }
}

async function versionOf(run: RunQuery, schema: string): Promise<number> {
  const [found] = await run<{ objects: number; ours: boolean }>(
    `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)) AS objects,
       to_regclass($2) IS NOT NULL AS ours`,
    [`"${schema}"`, `"${schema}".schema_version`],
  );
  if (!found || found.objects === 0) return 0;
  if (!found.ours) throw unusable(`The schema ${schema} belongs to another program. Choose another schema or database.`);
  const [row] = await run<{ version: number }>('SELECT version FROM schema_version');
  return row?.version ?? 0;
}

async function requireObjects(run: RunQuery, schema: string): Promise<void> {
  const found = (await run<{ object: string }>(OBJECTS, [`"${schema}"`])).map(({ object }) => object);
  const unknown = found.find((object) => !EXPECTED_SCHEMA.has(object));
  const missing = [...EXPECTED_SCHEMA].find((object) => !found.includes(object));
  const first = unknown ?? missing;
  if (first === undefined) return;
  const what = first.split(' ').slice(0, 2).join(' ').slice(0, 60);
  throw unusable(
    `The schema of this memory was changed outside Helmdeck Memory: ${what} ${unknown === undefined ? 'is missing' : 'is not as expected'}. Restore a backup of the database.`,
  );
}

const unusable = (message: string): Failure => new Failure('invalid_config', message);
