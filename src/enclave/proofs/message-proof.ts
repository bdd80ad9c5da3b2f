import { z } from 'zod'
import { MAX_RESPONSE_ID_CHARS } from '../../protocol/link.ts'
import type { Bytes } from '../../protocol/bytes.ts'
import type { AttestationBlock } from '../../protocol/receipt.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import type { MessageKey } from '../../verify/providers/judged-evidence.ts'
import type { Egress } from '../open-egress.ts'
import { isAciReceiptOf, splitAciReceipt } from '../../verify/providers/aci/receipt.ts'
import { verifyMessageSignature } from '../../verify/providers/message-signature.ts'

export type MessageAttestation = NonNullable<AttestationBlock['message_attestation']>

/** A finished completion whose provider signs completions. Digests are lowercase hex SHA-256 of the exact bytes. */
export interface FinishedMessage {
  readonly provider: string
  /** The completion's id from the provider; undefined where there was none. */
  readonly responseId: string | undefined
  readonly upstreamModel: string | undefined
  readonly requestDigest: string
  readonly responseDigest: string
  /** The key that the evidence of this exchange binds. */
  readonly key: MessageKey
}

export interface MessageProofDeps {
  readonly egress: Pick<Egress, 'get'>
  /** After this time the receipt is signed without a proof, ms. */
  readonly waitMs: number
  readonly pauseMs: number
}

/** How long a receipt waits for the provider's signature, and the pause between two requests for the signature, ms. */
export const MESSAGE_PROOF_TIMES = { waitMs: 2_000, pauseMs: 150 } as const

const MAX_ANSWER_BYTES = 65_536
/** Maximum length of the provider's receipt, which our receipt includes. */
const MAX_RECEIPT_CHARS = 8_192

const answerSchema = z.looseObject({
  text: z.string(),
  signature: z.string(),
  signing_address: z.string(),
  signing_algo: z.string(),
  signature_kind: z.string().optional(),
})
type Answer = z.output<typeof answerSchema>

/**
 * Fetches the provider's signature of a finished completion and checks it against our own digests and the attested key.
 * Never rejects and never takes longer than the time limit: `status` says what came of it (docs/egress.md).
 */
export async function proveMessage(
  message: FinishedMessage,
  deps: MessageProofDeps,
): Promise<MessageAttestation> {
  const { key, responseId } = message
  const by = { signing_algo: key.algorithm, signing_address: key.address }
  if (responseId?.isWellFormed() !== true || responseId.length > MAX_RESPONSE_ID_CHARS) {
    return { status: 'no_response_id', ...by }
  }
  const answer = await fetchSignature(message, responseId, deps)
  if (typeof answer === 'string') return { status: answer, ...by }
  return { ...by, ...(await judge(answer, message)) }
}

type Absence = 'timeout' | 'unsupported' | 'malformed'

/**
 * Requests the signature until it arrives or time runs out. A 404 can mean that the provider has not stored it yet, so
 * it is retried like any other failure.
 */
async function fetchSignature(
  { provider, upstreamModel, key }: FinishedMessage,
  responseId: string,
  { egress, waitMs, pauseMs }: MessageProofDeps,
): Promise<Answer | Absence> {
  const path = pathOf(responseId, key, upstreamModel)
  const signal = AbortSignal.timeout(waitMs)
  while (!signal.aborted) {
    // Attempts are sequential.
    const reply = await Promise.race([
      egress.get(provider, { path, maxBytes: MAX_ANSWER_BYTES, signal }),
      // If the peer has changed its key, `get` verifies the new key first, which may take longer than the limit.
      pause(waitMs, signal),
    ])
    if (reply && reply.status === 200) return readAnswer(reply.body, key)
    await pause(pauseMs, signal)
  }
  return 'timeout'
}

function pathOf(responseId: string, key: MessageKey, upstreamModel: string | undefined): string {
  const id = encodeURIComponent(responseId)
  if (key.keyset !== undefined) return `/aci/receipts/${id}`
  const query = new URLSearchParams({ signing_algo: key.algorithm })
  if (upstreamModel !== undefined) query.set('model', upstreamModel)
  return `/signature/${id}?${query.toString()}`
}

function readAnswer(body: Bytes, key: MessageKey): Answer | Absence {
  let json: unknown
  try {
    json = parseStrictJson(body, 'signature of a completion')
  } catch {
    return 'malformed'
  }
  if (key.keyset !== undefined) return readReceipt(json, key)
  const answer = answerSchema.safeParse(json)
  if (answer.success) return answer.data
  return z.looseObject({ error_code: z.string() }).safeParse(json).success
    ? 'unsupported'
    : 'malformed'
}

/** An ACI receipt names its key by an id that we cannot resolve; the key of the evidence must have signed it. */
function readReceipt(json: unknown, { algorithm, address }: MessageKey): Answer | Absence {
  const receipt = splitAciReceipt(json)
  if (receipt === undefined || receipt.text.length > MAX_RECEIPT_CHARS) return 'malformed'
  return { ...receipt, signing_address: address, signing_algo: algorithm }
}

/**
 * The texts that bind exactly this exchange. They are built and compared, never split, because a model's name may
 * contain colons.
 */
function expectedTexts(message: FinishedMessage): Readonly<Record<string, string>> {
  const { requestDigest, responseDigest, upstreamModel } = message
  const digests = `${requestDigest}:${responseDigest}`
  return {
    digests,
    ...(upstreamModel === undefined ? {} : { model_and_digests: `${upstreamModel}:${digests}` }),
  }
}

async function judge(answer: Answer, message: FinishedMessage): Promise<MessageAttestation> {
  const name = formOf(answer.text, message)
  if (name === undefined) return { status: 'mismatch' }
  const { text, signature, signing_address: address, signing_algo: algorithm } = answer
  const signer = signersOf(message).find(
    (one) =>
      one.algorithm === algorithm && one.address === address.toLowerCase().replace(/^0x/, ''),
  )
  if (signer === undefined) return { status: 'other_key' }
  if (!(await verifyMessageSignature(text, signature, signer))) return { status: 'invalid' }
  const by = { signing_algo: signer.algorithm, signing_address: signer.address }
  return { status: 'verified', text, form: name, signature: signature.toLowerCase(), ...by }
}

/**
 * The keys that may sign: that of the peer itself, and those of the nodes behind it that the same evidence shows for
 * this model.
 */
function signersOf({ key, upstreamModel }: FinishedMessage) {
  return [key, ...(key.behind ?? []).filter(({ model }) => model === upstreamModel)]
}

/** The name of the form in which a text binds exactly this exchange; undefined where it does not. */
function formOf(text: string, message: FinishedMessage): string | undefined {
  const { keyset } = message.key
  if (keyset !== undefined) {
    return isAciReceiptOf(text, { ...message, keyset }) ? 'aci_receipt' : undefined
  }
  return Object.entries(expectedTexts(message)).find(([, expected]) => expected === text)?.[0]
}

function pause(ms: number, signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve(undefined)
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
