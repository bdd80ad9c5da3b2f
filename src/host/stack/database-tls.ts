import { X509Certificate } from 'node:crypto'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** The certificates of a PEM text, one by one: workerd takes only the first one of each text. */
export function certificatesOf(pem: string): string[] {
  return [...pem.matchAll(CERTIFICATE)].map(([text]) => `${text}\n`)
}

/** Whether each certificate of a PEM text is one of an authority. */
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

const ADDRESS = /^[a-z]+:\/\/(?:[^@/?#]*@)?(?<host>[A-Za-z0-9._-]+)(?::\d+)?(?:[/?#]|$)/

/** The host that a `postgres://` address names; undefined when it names none, several, or a socket's file. */
export function databaseHost(address: string): string | undefined {
  return ADDRESS.exec(address)?.groups?.['host']
}
