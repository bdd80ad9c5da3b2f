import type { Bytes } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { readKeyConfig } from '../protocol/hpke-key-config.ts'

/** The HPKE key that a router serves, in the form of `LiveExpectations`. */
export interface ServedHpkeKey {
  readonly hpkeKeyConfigSha256?: string
  /** Why there is no key to compare, if there is none. */
  readonly notes: readonly string[]
}

/**
 * Reads a router's answer at `/.well-known/hpke-keys`, for the check `hpke_key`. A router that serves no key cannot be
 * sent encrypted bodies, so that is a note and not a fault.
 * @throws MalformedEvidence when the answer is not such a key
 */
export async function readServedHpkeKey(answer: {
  readonly status: number
  readonly body: Bytes
}): Promise<ServedHpkeKey> {
  if (answer.status !== 200) {
    return { notes: [`hpke_key: the router serves no key for bodies (${answer.status})`] }
  }
  readKeyConfig(answer.body)
  return { hpkeKeyConfigSha256: await sha256Hex(answer.body), notes: [] }
}
