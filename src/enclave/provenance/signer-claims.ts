import type { Signer } from '@sigstore/verify'
import { fromUtf8 } from '../../protocol/bytes.ts'
import { readDer, TAG } from '../../verify/x509/der.ts'

/** The certificate's claims about the signer (Fulcio, `docs/oid-info.md`); a missing claim is empty. */
export interface SignerClaims {
  readonly subject: string
  readonly issuer: string
  readonly runner: string
  readonly sourceRepository: string
  readonly sourceDigest: string
  readonly sourceRef: string
}

const FULCIO = '1.3.6.1.4.1.57264.1'

export function readSignerClaims({ identity }: Signer): SignerClaims {
  const claim = (arc: number): string => {
    const found = (identity?.oids ?? []).filter(
      ({ oid }) => oid?.id.join('.') === `${FULCIO}.${arc}`,
    )
    const [only, ...more] = found
    return only === undefined || more.length > 0 ? '' : readText(only.value)
  }
  return {
    subject: identity?.subjectAlternativeName ?? '',
    issuer: claim(8),
    runner: claim(11),
    sourceRepository: claim(12),
    sourceDigest: claim(13),
    sourceRef: claim(14),
  }
}

function readText(value: Uint8Array): string {
  try {
    return fromUtf8(readDer(Uint8Array.from(value), TAG.utf8String).body)
  } catch {
    return ''
  }
}
