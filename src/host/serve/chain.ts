import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Why a chain cannot be used; the message is for the operator. */
export class ChainRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ChainRefused'
  }
}

/** The validity of a certificate, ms since the epoch. */
export interface Validity {
  readonly from: number
  readonly to: number
}

const ONE_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** @throws ChainRefused when the file cannot be read */
export function readChainFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new ChainRefused(`${file} cannot be read (${code})`)
  }
}

/**
 * Whether the chain's first certificate is for this private key.
 * @throws ChainRefused when a certificate is missing or malformed
 */
export function isFor(chainPem: string, keyPem: string): boolean {
  return leafOf(chainPem).checkPrivateKey(createPrivateKey(keyPem))
}

/**
 * Checks everything that a client checks except whether it trusts the authority: order, dates, names.
 * @throws ChainRefused with the first check that fails
 */
export function checkChain(chainPem: string, domains: readonly string[], now: number): Validity {
  const certificates = certificatesOf(chainPem)
  const leaf = leafOf(chainPem)
  certificates.slice(0, -1).forEach((certificate, index) => {
    const issuer = certificates[index + 1]
    if (issuer === undefined || !certificate.checkIssued(issuer)) {
      throw new ChainRefused(
        `certificate ${index + 2} of the chain did not issue the one before it`,
      )
    }
  })
  const validity = validityOf(chainPem)
  if (now < validity.from) throw new ChainRefused('the certificate is not valid yet')
  if (now >= validity.to) throw new ChainRefused('the certificate has expired')
  const missing = domains.filter((domain) => leaf.checkHost(domain) === undefined)
  if (missing.length > 0) {
    throw new ChainRefused(`the certificate does not name ${missing.join(', ')}`)
  }
  return validity
}

/** @throws ChainRefused when a certificate is missing or malformed */
export function validityOf(chainPem: string): Validity {
  const leaf = leafOf(chainPem)
  return { from: Date.parse(leaf.validFrom), to: Date.parse(leaf.validTo) }
}

function leafOf(chainPem: string): X509Certificate {
  const [leaf] = certificatesOf(chainPem)
  if (leaf === undefined) throw new ChainRefused('there is no certificate in the chain')
  return leaf
}

function certificatesOf(chainPem: string): X509Certificate[] {
  try {
    return (chainPem.match(ONE_CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem))
  } catch {
    throw new ChainRefused('a certificate of the chain is malformed')
  }
}
