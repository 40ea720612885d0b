import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { Failure } from '../../contract/failure.ts';
import { readSecretFile } from '../../core/crypto/keys/provided-secret.ts';

export interface CertificateFiles {
  /** Path of the certificate and its intermediate certificates, in PEM. */
  readonly certificateFile: string;
  /** Path of the certificate's private key, in PEM. */
  readonly keyFile: string;
}

interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
}

const HOST_NAME = /^[a-z0-9-]+(\.[a-z0-9-]+)*$/i;

/** The certificate of the server, read from two files. Notices when the files are replaced by a renewed certificate. */
export class ServerCertificate {
  readonly #files: CertificateFiles;
  /** Identifies the contents of the files when they were last read. */
  #stamp: string;
  #certificate: X509Certificate;
  #material: TlsMaterial;

  /** Reads and checks both files. Throws if they cannot be used at this time. */
  constructor(files: CertificateFiles, now: number) {
    this.#files = files;
    this.#stamp = stampOf(files);
    const { certificate, material } = read(files, now);
    this.#certificate = certificate;
    this.#material = material;
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** When the certificate expires, in milliseconds since 1970. */
  get expires(): number {
    return Date.parse(this.#certificate.validTo);
  }

  /** The first DNS name or IP address in the certificate. Undefined if there is none, or only names with wildcards. */
  get firstName(): string | undefined {
    const names = (this.#certificate.subjectAltName ?? '').split(', ').map((name) => name.replace(/^(DNS|IP Address):/, ''));
    return names.find((name) => isIP(name) > 0 || HOST_NAME.test(name));
  }

  /** Whether the certificate is valid for a host name or IP address. */
  isFor(name: string): boolean {
    if (isIP(name) > 0) return this.#certificate.checkIP(name) !== undefined;
    // The common name is ignored, as clients do. A name with a wildcard would match itself, so it is refused.
    return HOST_NAME.test(name) && this.#certificate.checkHost(name, { subject: 'never' }) !== undefined;
  }

  /**
   * Reads the files again if they changed. Returns true if there is a new certificate. Throws if the changed files cannot be
   * used; the earlier certificate then stays in use until the files change again.
   */
  reload(now: number): boolean {
    const stamp = stampOf(this.#files);
    if (stamp === this.#stamp) return false;
    this.#stamp = stamp;
    const { certificate, material } = read(this.#files, now);
    this.#certificate = certificate;
    this.#material = material;
    return true;
  }
}

/** Throws if the files cannot be used for TLS at this time. */
export const checkCertificate = (files: CertificateFiles, now: number): void => void read(files, now);

/** Returns a text that changes when a file, or the file behind a link, is written or replaced. */
function stampOf({ certificateFile, keyFile }: CertificateFiles): string {
  return [certificateFile, keyFile]
    .map((path) => {
      const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
      return stats ? [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ') : 'none';
    })
    .join(', ');
}

function read(files: CertificateFiles, now: number): { certificate: X509Certificate; material: TlsMaterial } {
  const key = readSecretFile(files.keyFile, 'HELMDECK_TLS_KEY_FILE');
  const cert = readCertificateFile(files.certificateFile);
  const certificate = attempt(
    () => new X509Certificate(cert),
    'The file that HELMDECK_TLS_CERT_FILE names contains no certificate in PEM; set it to the path of the certificate.',
  );
  const privateKey = attempt(
    () => createPrivateKey(key),
    'The file that HELMDECK_TLS_KEY_FILE names contains no private key in PEM without a password; set it to the path of such a key.',
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw unusable(
      'The private key in HELMDECK_TLS_KEY_FILE does not belong to the certificate in HELMDECK_TLS_CERT_FILE; set both to files of the same certificate.',
    );
  }
  if (Date.parse(certificate.validTo) <= now) {
    throw unusable(`The certificate in HELMDECK_TLS_CERT_FILE expired on ${dayOf(certificate.validTo)}; renew it.`);
  }
  if (Date.parse(certificate.validFrom) > now) {
    throw unusable(
      `The certificate in HELMDECK_TLS_CERT_FILE is valid only from ${dayOf(certificate.validFrom)}; check the clock of this machine.`,
    );
  }
  attempt(
    // Loaded without `import`, so that a program without a server for other machines does not load the TLS library.
    () => process.getBuiltinModule('node:tls').createSecureContext({ cert, key }),
    'TLS does not accept the certificate in HELMDECK_TLS_CERT_FILE, for example because its key is too short; use another certificate.',
  );
  return { certificate, material: { cert, key } };
}

function readCertificateFile(path: string): string {
  return attempt(
    () => readFileSync(path, 'utf8'),
    'The file that HELMDECK_TLS_CERT_FILE names cannot be read; check the path and its permissions.',
  );
}

function attempt<T>(action: () => T, message: string): T {
  try {
    return action();
  } catch (cause) {
    throw unusable(message, cause);
  }
}

const dayOf = (date: string): string => new Date(date).toISOString().slice(0, 10);

const unusable = (message: string, cause?: unknown): Failure =>
  new Failure('invalid_config', message, cause === undefined ? {} : { cause });
