import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseDatabaseUrl } from '../../../../src/core/store/postgres/database-url.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

test('reads every part of an address', () => {
  expect(parseDatabaseUrl('postgres://ann%40x:p%2Fw@db.example:6543/team%20a?schema=memory_2')).toEqual({
    schema: 'memory_2',
    connection: {
      host: 'db.example',
      port: 6543,
      user: 'ann@x',
      password: 'p/w',
      database: 'team a',
      ssl: { rejectUnauthorized: true },
    },
  });
  expect(parseDatabaseUrl('postgresql:///memory?host=/run/postgresql')).toEqual({
    schema: 'helmdeck_memory',
    connection: { host: '/run/postgresql', port: 5432, database: 'memory', ssl: false },
  });
  expect(parseDatabaseUrl('postgres://[::1]/m').connection).toMatchObject({ host: '::1', ssl: false });
});

test('a comma in a password is no list of servers', () => {
  expect(parseDatabaseUrl('postgres://ann:a,b@db/m').connection).toMatchObject({ host: 'db', password: 'a,b' });
});

test('TLS is verified unless sslmode says otherwise or the server is on this machine', () => {
  const folder = tempFolder();
  for (const name of ['ca', 'cert', 'key']) writeFileSync(join(folder, name), `the ${name}`);
  const sslOf = (parameters: string, host = 'db.example') => parseDatabaseUrl(`postgres://${host}/m${parameters}`).connection.ssl;
  expect(sslOf('')).toEqual({ rejectUnauthorized: true });
  expect(sslOf('?sslmode=verify-full', 'localhost')).toEqual({ rejectUnauthorized: true });
  expect(sslOf('?sslmode=require')).toMatchObject({ rejectUnauthorized: false });
  expect(sslOf('?sslmode=disable')).toBe(false);
  expect(sslOf(`?sslrootcert=${folder}/ca&sslcert=${folder}/cert&sslkey=${folder}/key`)).toEqual({
    rejectUnauthorized: true,
    ca: 'the ca',
    cert: 'the cert',
    key: 'the key',
  });
  // As with libpq, both verify the authority and not the name.
  for (const mode of ['verify-ca', 'require']) {
    const ssl = sslOf(`?sslmode=${mode}&sslrootcert=${folder}/ca`);
    expect(ssl).toMatchObject({ rejectUnauthorized: true, ca: 'the ca' });
    expect((ssl as { checkServerIdentity: () => unknown }).checkServerIdentity()).toBeUndefined();
  }
});

test.each([
  ['', /not an address/],
  ['db.example', /not an address/],
  ['mysql://ann:secret@db/m', /not an address/],
  ['postgres://ann:secret@db/', /no database/],
  ['postgres://ann:secret@db1:5432,db2:5432/m?target_session_attrs=read-write', /one address that always leads to the primary/],
  ['postgres://ann:secret@db1,db2/m', /several servers/],
  ['postgres://[::1],[::2]/m', /several servers/],
  ['postgres://ann:secret@db/m?target_session_attrs=read-write', /a standby is always refused; remove it/],
  ['postgres://ann:se,/cret@db/m', /not an address/],
  ['postgres://ann:secret@db/m?sslmode=prefer', /sslmode must be one of/],
  ['postgres://ann:secret@db/m?sslmode=require&sslmode=disable', /twice/],
  ['postgres://ann:secret@db/m?options=-c', /unknown parameter; use sslmode/],
  ['postgres://ann:12?secret@db/m', /write \? in a password as %3F/],
  ['postgres://ann:12#secret@db/m', /write # in a password as %23/],
  ['postgres://ann:secret@db/m?schema=A"b', /schema must have/],
  ['postgres://ann:secret@db/m?host=other', /folder of a socket/],
  ['postgres://ann:secret@db/m?sslmode=verify-ca', /verify-ca needs sslrootcert/],
  ['postgres://ann:secret@db/m?sslrootcert=/no/such/file', /file of sslrootcert/],
  ['postgres://ann:sec%ret@db/m', /percent code/],
])('refuses %s with one sentence that does not repeat it', (text, why) => {
  const refused = (): unknown => parseDatabaseUrl(text);
  expect(refused).toThrow(expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(why) as string }));
  expect(refused).not.toThrow(/secret|sec%ret/);
});
