import type { Certificate } from './certificate.ts'
import { readBoolean, readChildren, readDer, readSmallInteger, TAG } from './der.ts'

/** What a certificate permits its key to do (RFC 5280 sections 4.2.1.3 and 4.2.1.9). */
export interface Authority {
  readonly ca: boolean
  readonly pathLength: number | undefined
  readonly certSign: boolean
}

const KEY_USAGE = '2.5.29.15'
const BASIC_CONSTRAINTS = '2.5.29.19'
const KEY_CERT_SIGN = 0x04

/**
 * Parses both extensions; an absent or repeated one permits nothing.
 * @throws MalformedEvidence when an extension cannot be parsed
 */
export function readAuthority(certificate: Certificate): Authority {
  const constraints = single(certificate, BASIC_CONSTRAINTS)
  const [ca, pathLength] =
    constraints === undefined ? [] : readChildren(readDer(constraints.value, TAG.sequence))
  const usage = single(certificate, KEY_USAGE)
  const usageBits = usage === undefined ? 0 : (readDer(usage.value, TAG.bitString).body[1] ?? 0)
  return {
    ca: ca !== undefined && readBoolean(ca),
    pathLength: pathLength === undefined ? undefined : readSmallInteger(pathLength),
    certSign: (usageBits & KEY_CERT_SIGN) !== 0,
  }
}

function single({ extensions }: Certificate, wanted: string) {
  const found = extensions.filter(({ id }) => id === wanted)
  return found.length === 1 ? found[0] : undefined
}
