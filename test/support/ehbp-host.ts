import type { HpkeKeyring } from '../../src/enclave/hpke/hpke-keyring.ts'
import { LinkError } from '../../src/enclave/link-error.ts'
import { fromHex } from '../../src/protocol/bytes.ts'
import {
  ENCRYPTED_REFUSALS,
  type EhbpDeps,
  type OpeningDeps,
} from '../../src/worker/ehbp/encrypted-exchange.ts'
import { Refusals } from '../../src/worker/limits/refusals.ts'
import { SourceBudget } from '../../src/worker/http/source-budget.ts'
import type { DecapsulatedKey, DecapsulateRefusal } from '../../src/worker/link/link.ts'

const REASONS: Readonly<Record<string, DecapsulateRefusal>> = {
  invalid_request: 'malformed',
  replayed: 'replayed',
  rate_limited: 'share',
  used_up: 'used_up',
}

/** The daemon's keyring without the link between. */
export function ehbpDeps(keyring: () => HpkeKeyring): EhbpDeps {
  return {
    link: {
      async decapsulate(enc, owner): Promise<DecapsulatedKey> {
        try {
          return { ok: true, secrets: await keyring().decapsulate(fromHex(enc), owner) }
        } catch (error) {
          const reason = error instanceof LinkError ? REASONS[error.code] : undefined
          if (reason === undefined) throw error
          return { ok: false, reason }
        }
      },
    },
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    refusalBudget: new SourceBudget(ENCRYPTED_REFUSALS, Date.now),
    shareRefusals: new Refusals(Date.now),
    now: Date.now,
  }
}

/** What a request of this customer takes of the router: as much as it likes. */
export function opening(
  owner = 'customer',
  takeMemory: (bytes: number) => void = () => {},
): OpeningDeps {
  return { owner, takeMemory, inTurn: (_cost, work) => work(() => {}) }
}
