import type { HpkeKeyring } from '../../src/enclave/hpke/hpke-keyring.ts'
import { LinkError } from '../../src/enclave/link-error.ts'
import { fromHex } from '../../src/protocol/bytes.ts'
import type { EhbpDeps } from '../../src/worker/ehbp/encrypted-exchange.ts'
import type { DecapsulatedKey } from '../../src/worker/link/link.ts'

const REASONS: Readonly<Record<string, 'malformed' | 'replayed' | 'used_up'>> = {
  invalid_request: 'malformed',
  replayed: 'replayed',
  rate_limited: 'used_up',
}

/** The daemon's keyring without the link between. */
export function ehbpDeps(keyring: () => HpkeKeyring): EhbpDeps {
  return {
    link: {
      async decapsulate(enc, once): Promise<DecapsulatedKey> {
        try {
          return { ok: true, secrets: await keyring().decapsulate(fromHex(enc), { once }) }
        } catch (error) {
          const reason = error instanceof LinkError ? REASONS[error.code] : undefined
          if (reason === undefined) throw error
          return { ok: false, reason }
        }
      },
    },
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    now: Date.now,
  }
}
