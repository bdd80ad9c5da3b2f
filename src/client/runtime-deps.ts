import { toHex } from '../protocol/bytes.ts'
import type { ClientDeps } from './options.ts'

/** The dependencies of a client outside tests. */
export const RUNTIME_DEPS: ClientDeps = {
  now: () => Date.now(),
  nonce: () => toHex(crypto.getRandomValues(new Uint8Array(32))),
}
