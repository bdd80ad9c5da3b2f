import type { AttestationBlock } from '../../protocol/receipt.ts'
import { firstFault, judge, type Check } from '../check.ts'
import type { ProviderHop } from '../receipt-provider.ts'
import { isAciReceiptOf } from './aci/receipt.ts'
import type { JudgedEvidence, MessageKey } from './judged-evidence.ts'
import { verifyMessageSignature } from './message-signature.ts'

/** Verifies again the signature over this exchange, where the receipt states that it was verified. */
export async function checkMessage(
  { message_attestation: proof }: AttestationBlock,
  { messageKey }: JudgedEvidence,
  exchange: ProviderHop['exchange'],
): Promise<Check[]> {
  if (proof?.['status'] !== 'verified') return []
  const { text, signature, signing_address: stated } = proof
  const ofExchange = typeof text === 'string' && isOfExchange(text, messageKey, exchange)
  const signers = signersOf(text, messageKey, exchange).filter(
    ({ address }) => stated === undefined || stated === address,
  )
  const signed = ofExchange && (await isSignedByOne(text, signature, signers))
  const fault = firstFault(
    !ofExchange && 'it is not over the bytes of this exchange',
    !signed && 'it is not by the key that the evidence vouches for',
  )
  const [{ address } = { address: '' }] = signers
  return [judge('message_signature', fault, address)]
}

function isOfExchange(
  text: string,
  key: MessageKey | undefined,
  exchange: ProviderHop['exchange'],
): boolean {
  const { keyset } = key ?? {}
  return keyset === undefined
    ? `:${text}`.endsWith(`:${digestsOf(exchange)}`)
    : isAciReceiptOf(text, { keyset, ...exchange })
}

const digestsOf = ({ requestDigest, responseDigest }: ProviderHop['exchange']) =>
  `${requestDigest}:${responseDigest}`

/** The keys that the evidence binds; a node behind a gateway signs only for its own model. */
function signersOf(
  text: unknown,
  key: MessageKey | undefined,
  exchange: ProviderHop['exchange'],
): readonly Pick<MessageKey, 'algorithm' | 'address'>[] {
  if (key === undefined) return []
  const digests = digestsOf(exchange)
  const nodes = (key.behind ?? []).filter(
    ({ model }) => text === digests || text === `${model}:${digests}`,
  )
  return [key, ...nodes]
}

async function isSignedByOne(
  text: string,
  signature: unknown,
  signers: readonly Pick<MessageKey, 'algorithm' | 'address'>[],
): Promise<boolean> {
  if (typeof signature !== 'string') return false
  const verified = signers.map((signer) => verifyMessageSignature(text, signature, signer))
  return (await Promise.all(verified)).includes(true)
}
