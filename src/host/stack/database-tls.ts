import { X509Certificate } from 'node:crypto'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** Splits a PEM text into its certificates, because workerd reads only the first one of each text. */
export function certificatesOf(pem: string): string[] {
  return [...pem.matchAll(CERTIFICATE)].map(([text]) => `${text}\n`)
}

/** Whether each certificate of a PEM text is that of a certificate authority. */
export function areAuthorities(pem: string): boolean {
  return certificatesOf(pem).every(isAuthority)
}

function isAuthority(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca
  } catch {
    return false
  }
}

/** What is wrong with a text that `isPostgresAddress` refuses. */
export const NO_POSTGRES_ADDRESS =
  'is not an address of PostgreSQL: postgres://<user>:<password>@<host>/<database>'

/** Whether a text has the form of an address of PostgreSQL, which no other database's has. */
export function isPostgresAddress(text: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(text)
}

const ADDRESS = /^[a-z]+:\/\/(?:[^@/?#]*@)?(?<host>[A-Za-z0-9._-]+)(?::\d+)?(?:[/?#]|$)/

/** The host in a `postgres://` address; undefined when it names none, several, or a socket file. */
export function databaseHost(address: string): string | undefined {
  return ADDRESS.exec(address)?.groups?.['host']
}
