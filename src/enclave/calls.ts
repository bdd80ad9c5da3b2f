import { ChunkJoiner } from './egress/chunk-joiner.ts'
import type { EventMemory } from './egress/event-memory.ts'
import { createProviderEgress } from './egress/provider-egress.ts'
import type { Log } from './log.ts'
import type { Egress } from './open-egress.ts'
import type { ProvenProviders } from './proofs.ts'
import { MESSAGE_PROOF_TIMES, proveMessage } from './proofs/message-proof.ts'
import {
  createInstantSigner,
  type InstantSignerDeps,
  type SignerDeps,
} from './sign/receipt-signer.ts'
import { WholeAnswers } from './whole-answers/whole-answers.ts'

export interface CallsInputs {
  readonly proofs: ProvenProviders
  /** Timeout of TCP and TLS together. */
  readonly connectMs: () => number
  /** Memory for large events; shared with other threads where given. */
  readonly memory?: EventMemory
  /** Signs the receipts of complete answers that are written here. */
  readonly signer: Pick<InstantSignerDeps, 'key' | 'routerHop'>
  /** How many streams whose chunks are written here may be open, or wait for their worker to fetch the record. */
  readonly maxStreams: number
  readonly now: () => number
  /** The id of this thread, a UUID. */
  readonly thread: string
  readonly log: Log
}

/** Calls to providers from one thread. */
export interface Calls {
  readonly egress: Egress
  readonly proveMessage: SignerDeps['proveMessage']
}

export function openCalls(inputs: CallsInputs): Calls {
  const { proofs, signer, now, log } = inputs
  const joiner = new ChunkJoiner({ now })
  const sign = createInstantSigner({ ...signer, proofs })
  const wholes = new WholeAnswers({ sign, now, log })
  const egress = createProviderEgress({ ...inputs, joiner, writeWholeAnswer: wholes.add })
  return {
    egress,
    proveMessage: (message) => proveMessage(message, { egress, ...MESSAGE_PROOF_TIMES }),
  }
}
