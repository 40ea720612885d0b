import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './temp-folder.ts';

export interface IssuedCertificate {
  readonly certificateFile: string;
  readonly keyFile: string;
}

interface IssueOptions {
  /** Days from now. A negative number is a certificate that has expired. */
  readonly from?: number;
  readonly until?: number;
  /** Without subject alternative names, the first name is only in the common name. */
  readonly withoutAlternativeNames?: boolean;
}

export interface CertificateAuthority {
  readonly caFile: string;
  readonly ca: string;
  /** Issues a certificate for names such as `DNS:memory.test` and `IP:127.0.0.2`. */
  issue(names: readonly string[], options?: IssueOptions): IssuedCertificate;
}

const DAY_MS = 86_400_000;
const dateAt = (days: number): string =>
  `${new Date(Date.now() + days * DAY_MS).toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`;

const openssl = (cwd: string, ...args: readonly string[]): void =>
  void execFileSync('openssl', args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });

const EC_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** Creates a certificate authority with OpenSSL. */
export function createAuthority(name = 'Test CA'): CertificateAuthority {
  const folder = tempFolder();
  const config = [
    '[ca]',
    'default_ca = own',
    '[own]',
    `dir = ${folder}`,
    'database = $dir/index.txt',
    'new_certs_dir = $dir',
    'rand_serial = yes',
    'default_md = sha256',
    'policy = any',
    'unique_subject = no',
    'copy_extensions = copy',
    'certificate = $dir/ca.pem',
    'private_key = $dir/ca.key',
    '[any]',
    'commonName = supplied',
    '[req]',
    'distinguished_name = dn',
    '[dn]',
    '[root]',
    'basicConstraints = critical,CA:true',
    'keyUsage = critical,keyCertSign',
  ];
  writeFileSync(join(folder, 'openssl.cnf'), `${config.join('\n')}\n`);
  writeFileSync(join(folder, 'index.txt'), '');
  const own = ['-config', 'openssl.cnf'];
  openssl(
    folder,
    'req',
    '-x509',
    ...own,
    '-extensions',
    'root',
    ...EC_KEY,
    '-subj',
    `/CN=${name}`,
    '-days',
    '30',
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
  );
  let issued = 0;
  return {
    caFile: join(folder, 'ca.pem'),
    ca: readFileSync(join(folder, 'ca.pem'), 'utf8'),
    issue(names, { from = -1, until = 20, withoutAlternativeNames = false } = {}) {
      issued += 1;
      const target = join(folder, `issued-${issued}`);
      mkdirSync(target);
      const subject = `/CN=${names[0]?.replace(/^\w+:/, '') ?? 'nobody'}`;
      const alternative = withoutAlternativeNames ? [] : ['-addext', `subjectAltName=${names.join(',')}`];
      openssl(
        folder,
        'req',
        '-new',
        ...own,
        ...EC_KEY,
        '-subj',
        subject,
        ...alternative,
        '-keyout',
        join(target, 'key.pem'),
        '-out',
        join(target, 'request.pem'),
      );
      openssl(
        folder,
        'ca',
        '-batch',
        '-notext',
        ...own,
        '-startdate',
        dateAt(from),
        '-enddate',
        dateAt(until),
        '-in',
        join(target, 'request.pem'),
        '-out',
        join(target, 'cert.pem'),
      );
      return { certificateFile: join(target, 'cert.pem'), keyFile: join(target, 'key.pem') };
    },
  };
}
