import type { LoadedConfig } from '../config/load-config.ts'
import type { Log } from '../log.ts'
import type { ProvenTime } from '../clock/proven-time.ts'
import { NonceMemory } from './nonce-memory.ts'
import type { Offers } from './offers.ts'
import { UnsealGate } from './unseal-gate.ts'

export interface GateInputs {
  /** The configuration in effect. */
  readonly current: () => LoadedConfig
  /** Digest of the TLS key in use, lowercase hex. */
  readonly tlsSpkiSha256: () => string
  readonly offers: Pick<Offers, 'offer'>
  readonly proven: ProvenTime
  readonly now: () => number
  readonly log: Log
}

/** The gate for the operator's documents, and the nonces that such a document may use. */
export interface Unsealing {
  readonly gate: UnsealGate
  readonly nonces: NonceMemory
}

export function openGate(inputs: GateInputs): Unsealing {
  const { current, tlsSpkiSha256, offers, proven, now, log } = inputs
  const nonces = new NonceMemory(now)
  const target = () => ({
    operatorKey: current().config.service.unseal?.operator_key,
    configurationSha256: current().sha256,
    tlsSpkiSha256: tlsSpkiSha256(),
  })
  return {
    nonces,
    gate: new UnsealGate({
      target,
      nonces,
      proven,
      now,
      log,
      offer: (document) => offers.offer(document),
    }),
  }
}
