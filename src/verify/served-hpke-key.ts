import type { Bytes } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { readKeyConfig } from '../protocol/hpke-key-config.ts'

/** The HPKE key that a router serves, as `LiveExpectations` take it. */
export interface ServedHpkeKey {
  readonly hpkeKeyConfigSha256?: string
  /** Why there is nothing to compare, where there is not. */
  readonly notes: readonly string[]
}

/**
 * Reads what a router answered at `/.well-known/hpke-keys`, for the check `hpke_key`. A router that serves no key cannot
 * be sent encrypted bodies, so that is a note and no fault.
 * @throws MalformedEvidence when what is served is no such key
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
