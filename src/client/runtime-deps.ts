import { toHex } from '../protocol/bytes.ts'
import type { ClientDeps } from './options.ts'

/** What a client takes from its surroundings outside tests. */
export const RUNTIME_DEPS: ClientDeps = {
  now: () => Date.now(),
  nonce: () => toHex(crypto.getRandomValues(new Uint8Array(32))),
}
