import type pg from 'pg';
import { Failure } from '../../../contract/failure.ts';
import type { RunQuery } from './database.ts';
import { EXPECTED_SCHEMA } from './expected-schema.ts';

/** Oldest supported version of PostgreSQL. Security updates for earlier versions have ended. */
const OLDEST_SERVER = 140_000;
const CATALOG_ONLY = 'SET LOCAL search_path = pg_catalog, pg_temp';

/**
 * The first schema. Stored unencrypted: namespace, kind, category, times, sizes and a keyed hash of the key. Everything else of an
 * entry is inside `sealed`.
 */
const ENTRIES = `
  CREATE TABLE schema_version (version integer NOT NULL);
  INSERT INTO schema_version VALUES (1);

  -- Empty. A writer locks this table first, so the commits of all processes have one order, and the change number has no gap.
  CREATE TABLE writer_lock ();

  -- One row for each commit, with the last numbers that were used. The mark tells whether a commit whose answer was lost took place.
  -- No row is updated for each commit, because an open snapshot, such as that of pg_dump, would keep all its versions.
  CREATE TABLE change_log (
    number bigint PRIMARY KEY,
    mark bytea NOT NULL UNIQUE,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_row bigint NOT NULL,
    last_namespace bigint NOT NULL,
    last_tombstone bigint NOT NULL,
    stored bigint[] NOT NULL,
    deleted bigint[] NOT NULL,
    topics text[] NOT NULL
  );
  INSERT INTO change_log VALUES (0, decode(replace(gen_random_uuid()::text, '-', ''), 'hex'), DEFAULT, 0, 0, 0, '{}', '{}', '{}');

  -- A value is a sealed secret, or a plain text that holds no secret.
  CREATE TABLE meta (
    name text COLLATE "C" PRIMARY KEY,
    secret bytea,
    plain text,
    CHECK ((secret IS NULL) <> (plain IS NULL))
  );

  -- Identifies this memory in a keychain that holds the keys of several memories.
  INSERT INTO meta (name, plain) VALUES ('memory', replace(gen_random_uuid()::text, '-', ''));

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

/**
 * The vectors of facts, encrypted like entries, because the text of a fact can be reconstructed from its vector. A vector is deleted
 * together with its fact, and when the fact changes or its key is hashed with another master key.
 */
const VECTORS = `
  CREATE TABLE vector (
    number bigint PRIMARY KEY,
    namespace bigint NOT NULL,
    model bigint NOT NULL,
    sealed bytea NOT NULL
  );
  ALTER TABLE vector ALTER COLUMN sealed SET STORAGE EXTERNAL;
  CREATE INDEX vector_model ON vector (namespace, model, number);

  -- The array makes the server look up each number in the index, whatever it expects of the size of the change.
  CREATE FUNCTION delete_vectors() RETURNS trigger LANGUAGE plpgsql AS $body$
  BEGIN
    DELETE FROM vector WHERE number = ANY (ARRAY(SELECT number FROM deleted WHERE kind = 1));
    RETURN NULL;
  END $body$;
  CREATE FUNCTION delete_changed_vectors() RETURNS trigger LANGUAGE plpgsql AS $body$
  BEGIN
    DELETE FROM vector WHERE number = ANY (ARRAY(
      SELECT number FROM deleted JOIN inserted USING (number)
        WHERE deleted.kind = 1 AND (deleted.updated_at <> inserted.updated_at OR deleted.key_hash <> inserted.key_hash)));
    RETURN NULL;
  END $body$;
  CREATE TRIGGER vector_of_deleted AFTER DELETE ON entry
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION delete_vectors();
  CREATE TRIGGER vector_of_changed AFTER UPDATE ON entry
    REFERENCING OLD TABLE AS deleted NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION delete_changed_vectors();
`;

/** All migrations, applied in order. Never edit a migration that was released; add another migration instead. */
const MIGRATIONS: readonly string[] = [ENTRIES, VECTORS];

/** Lists everything in the schema that could change what a statement reads, writes or deletes. */
const OBJECTS = `
  SELECT 'table ' || c.relname::text || ' ' || c.relkind::text || ' ' || coalesce((
      SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
          || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''), ', ' ORDER BY a.attnum)
        FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '')
      || CASE WHEN c.relrowsecurity THEN ' with row security' ELSE '' END AS object
    FROM pg_class c WHERE c.relnamespace = $1::regnamespace::oid AND c.relkind IN ('r', 'v', 'm', 'f', 'p', 'S', 'c')
  UNION ALL
  SELECT 'index ' || replace(pg_get_indexdef(i.indexrelid), quote_ident(n.nspname) || '.', '')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.oid = $1::regnamespace::oid
  UNION ALL
  SELECT 'constraint ' || r.relname::text || ' ' || pg_get_constraintdef(c.oid)
    FROM pg_constraint c LEFT JOIN pg_class r ON r.oid = c.conrelid
    WHERE c.connamespace = $1::regnamespace::oid AND c.contype <> 'n'
  UNION ALL
  SELECT 'trigger ' || replace(pg_get_triggerdef(t.oid), quote_ident(n.nspname) || '.', '') || ' ' || t.tgenabled::text
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.oid = $1::regnamespace::oid AND NOT t.tgisinternal
  UNION ALL
  SELECT 'function ' || p.proname::text || ' ' || md5(p.prosrc) FROM pg_proc p WHERE p.pronamespace = $1::regnamespace::oid
  UNION ALL
  SELECT 'rule ' || r.rulename::text FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
    WHERE c.relnamespace = $1::regnamespace::oid AND c.relkind = 'r'
  UNION ALL
  -- Operators, types, collations and everything else that the migrations never create.
  SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
    WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = $1::regnamespace::oid
      AND d.classid <> ALL (ARRAY['pg_class', 'pg_proc', 'pg_default_acl']::regclass[])
  ORDER BY 1`;

/**
 * Lists what lets another role change this memory, or run its own code with our rights: it owns the schema or an object, it may
 * create objects, or it may write to a table.
 */
const FOREIGN_RIGHTS = `
  SELECT 'The role ' || pg_get_userbyid(n.nspowner) || ' owns the schema' AS reason, 1 AS place
    FROM pg_namespace n WHERE n.nspname = $1 AND pg_get_userbyid(n.nspowner) <> current_user
  UNION ALL
  SELECT CASE a.grantee WHEN 0 THEN 'Every role' ELSE 'The role ' || pg_get_userbyid(a.grantee) END || ' may create objects in the schema', 2
    FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a
    WHERE n.nspname = $1 AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
  UNION ALL
  SELECT 'The role ' || pg_get_userbyid(c.relowner) || ' owns ' || c.relname, 3
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND pg_get_userbyid(c.relowner) <> current_user
  UNION ALL
  SELECT 'The role ' || pg_get_userbyid(p.proowner) || ' owns the function ' || p.proname, 3
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = $1 AND pg_get_userbyid(p.proowner) <> current_user
  UNION ALL
  SELECT CASE a.grantee WHEN 0 THEN 'Every role' ELSE 'The role ' || pg_get_userbyid(a.grantee) END || ' may change the table ' || c.relname, 4
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN aclexplode(c.relacl) a
    WHERE n.nspname = $1 AND a.privilege_type NOT IN ('SELECT', 'MAINTAIN') AND a.grantee <> c.relowner
  ORDER BY place, reason`;

/** Checks the server, and creates or migrates the tables. Nothing is written before all checks have passed. */
export async function prepareSchema(client: pg.Client, run: RunQuery, schema: string): Promise<void> {
  await inTransaction(client, async () => {
    const found = await checkedVersion(run, schema);
    if (found > MIGRATIONS.length) {
      throw unusable(
        `The database was written by a newer version of Helmdeck Memory (schema ${found}; this version supports up to ${MIGRATIONS.length}); update Helmdeck Memory. Nothing was changed.`,
      );
    }
    if (found === 0) await createSchema(client, run, schema);
    await client.query(`SET LOCAL search_path = "${schema}"`);
    for (const sql of MIGRATIONS.slice(found)) await client.query(sql);
    if (found < MIGRATIONS.length) await client.query(`UPDATE schema_version SET version = ${MIGRATIONS.length}`);
    await client.query(CATALOG_ONLY);
    await requireObjects(run, schema);
  });
}

/** Checks the server and the tables without changing anything. Returns false if there is no memory in the schema. */
export function requireSchema(client: pg.Client, run: RunQuery, schema: string): Promise<boolean> {
  return inTransaction(client, async () => {
    const found = await checkedVersion(run, schema);
    if (found === 0) return false;
    if (found !== MIGRATIONS.length) throw unusable('The database has another version; start Helmdeck Memory with it first.');
    await requireObjects(run, schema);
    return true;
  });
}

/**
 * Runs the checks in one transaction. Until they have passed, no function or operator of the schema may run, because another role
 * may have created it to act with our rights. So the path contains only the server's own schema.
 */
async function inTransaction<T>(client: pg.Client, step: () => Promise<T>): Promise<T> {
  await client.query('BEGIN');
  try {
    await client.query(CATALOG_ONLY);
    const result = await step();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** Checks the server and who can change the schema. Returns the schema's version, or 0 if it contains no memory yet. */
async function checkedVersion(run: RunQuery, schema: string): Promise<number> {
  await requireServer(run);
  // Two processes that start together must not both create the tables.
  await run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`helmdeck-memory schema ${schema}`]);
  const [objects] = await run<{ count: number; ours: boolean }>(
    `SELECT count(*), coalesce(bool_or(c.relname = 'schema_version' AND c.relkind = 'r'), false) AS ours
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1`,
    [schema],
  );
  if (objects && objects.count > 0 && !objects.ours) {
    throw unusable(`The schema ${schema} belongs to another program. Choose another schema or database.`);
  }
  const [foreign] = await run<{ reason: string }>(FOREIGN_RIGHTS, [schema]);
  if (foreign) {
    throw unusable(
      `${foreign.reason}. Another role could then read or change this memory. In the schema ${schema}, only the role of Helmdeck Memory may own or change anything.`,
    );
  }
  if (!objects?.ours) return 0;
  const [row] = await run<{ version: number }>(`SELECT version FROM "${schema}".schema_version`);
  return row?.version ?? 0;
}

/** Creates the schema unless an administrator has created it, because a role needs no right to create schemas then. */
async function createSchema(client: pg.Client, run: RunQuery, schema: string): Promise<void> {
  const [found] = await run('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  if (!found) await client.query(`CREATE SCHEMA "${schema}"`);
}

async function requireServer(run: RunQuery): Promise<void> {
  const [server] = await run<Record<string, string>>(
    `SELECT current_setting('server_version_num') AS version, current_setting('server_version') AS name,
       current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages, current_setting('server_encoding') AS encoding,
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
    ['fsync', server['fsync']],
    ['full_page_writes', server['pages']],
  ] as const) {
    if (value !== 'off') continue;
    throw unusable(
      `The database server can lose acknowledged writes, because ${name} is off. Turn it on, and restart the server.`,
    );
  }
}

/** Lists how the schema differs from the schema of our migrations. */
export async function schemaDifferences(run: RunQuery, schema: string): Promise<string[]> {
  const found = (await run<{ object: string }>(OBJECTS, [`"${schema}"`])).map(({ object }) => object);
  const name = (object: string): string =>
    object
      .replace(/^index CREATE (UNIQUE )?INDEX/, 'index')
      .replace(/^trigger CREATE TRIGGER/, 'trigger')
      .split(' ')
      .slice(0, 2)
      .join(' ')
      .slice(0, 60);
  return [
    ...found.filter((object) => !EXPECTED_SCHEMA.has(object)).map((object) => `${name(object)} is not as expected`),
    ...[...EXPECTED_SCHEMA].filter((object) => !found.includes(object)).map((object) => `${name(object)} is missing`),
  ];
}

async function requireObjects(run: RunQuery, schema: string): Promise<void> {
  const [first] = await schemaDifferences(run, schema);
  if (first === undefined) return;
  throw unusable(`The schema of this memory was changed outside Helmdeck Memory: ${first}. Restore a backup of the database.`);
}

const unusable = (message: string): Failure => new Failure('invalid_config', message);
