import type { FromDaemon } from '../../protocol/boot.ts'
import type { ServedEnvelope } from './build-envelope.ts'

const REASON =
  "neither host nor AMD's key service gave one that is in force, so clients that require it will refuse this router"

/** Reports an envelope without AMD's revocation list: once, and again only after an envelope that had one. */
export function createMissingListNotice(
  notify: (message: FromDaemon) => void,
): (served: Pick<ServedEnvelope, 'envelope'>) => void {
  let missing = false
  return ({ envelope }) => {
    const before = missing
    missing = envelope.snp_crl_b64 === undefined
    if (missing && !before) notify({ type: 'revocation_list_missing', reason: REASON })
  }
}
