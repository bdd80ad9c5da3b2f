import { z } from 'zod'
import type { SigningKey } from '../../enclave/release/signing-key.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'
import { UNSEAL_PATH, type UnsealDocument } from '../../protocol/unseal.ts'
import { InputError } from '../verify/input-error.ts'
import { connectGuest, type GuestConnection } from './guest-connection.ts'
import { proveGuest, type GuestPolicy, type GuestProof } from './prove-guest.ts'
import { signUnsealDocument } from './sign-document.ts'

export interface UnsealRequest {
  readonly address: string
  readonly policy: GuestPolicy
  readonly operator: SigningKey
  readonly secrets: UnsealDocument['secrets']
  /** The last known ledger position of this router. */
  readonly ledgerPosition?: number | undefined
}

export type UnsealOutcome =
  | { readonly kind: 'unsealed'; readonly proof: GuestProof }
  /** A check of the router's evidence failed; no secrets were sent. */
  | { readonly kind: 'unproven'; readonly proof: GuestProof }
  /** The router was proven, but refused the unseal document. */
  | {
      readonly kind: 'refused'
      readonly proof: GuestProof
      readonly reason: string
      readonly message: string
    }

/**
 * Verifies a router, and sends it its secrets on the verified connection.
 * @throws InputError when the router cannot be reached or does not answer
 * @throws MalformedEvidence when its evidence cannot be parsed
 */
export async function unsealGuest(request: UnsealRequest): Promise<UnsealOutcome> {
  const connection = await connectGuest(request.address)
  try {
    return await unsealOver(connection, request)
  } finally {
    connection.close()
  }
}

/** Like `unsealGuest`, on an open connection. */
export async function unsealOver(
  connection: GuestConnection,
  { policy, operator, secrets, ledgerPosition }: Omit<UnsealRequest, 'address'>,
): Promise<UnsealOutcome> {
  const proof = await proveGuest(connection, policy)
  if (!proof.ok) return { kind: 'unproven', proof }
  const terms = {
    nonce: proof.nonce,
    tls_spki_sha256: connection.tlsSpkiSha256,
    configuration_sha256: policy.configurationSha256,
    secrets,
    ledger_position: ledgerPosition,
  }
  const document = await signUnsealDocument(terms, operator, Date.now())
  const { status, body } = await connection.post(UNSEAL_PATH, document).catch(withUnknownEffect)
  if (status === 200) return { kind: 'unsealed', proof }
  return { kind: 'refused', proof, ...readRefusal(status, body) }
}

/** Without this, the operator would take the failure for one of the connection, before anything was sent. */
function withUnknownEffect(cause: unknown): never {
  throw new InputError(
    `${messageOfThrown(cause)}. The router proved itself and was sent its secrets; whether they took effect is not known: run the command again`,
    { cause },
  )
}

const refusalSchema = z.object({
  error: z.object({ message: z.string(), code: z.string(), reason: z.string().optional() }),
})

function readRefusal(status: number, body: Uint8Array): { reason: string; message: string } {
  const parsed = refusalSchema.safeParse(parseJson(body))
  if (!parsed.success) return { reason: 'unknown', message: `the router answers ${status}` }
  const { message, code, reason } = parsed.data.error
  return { reason: reason ?? code, message }
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'))
  } catch {
    return undefined
  }
}
