import { toHex } from '../protocol/bytes.ts'
import { clientOver, type Client } from './client.ts'
import { defaultStatePath, fileState } from './node/bundle-state.ts'
import { TlsTransport } from './node/tls-transport.ts'
import { readOptions, type ClientDeps, type ClientOptions } from './options.ts'

/**
 * What an application imports as `confidential-model-router/client` under Node: a `fetch` that proves the router before
 * the first byte of a request leaves, on the very connection that carries it.
 */

export type { Client, Receipts } from './client.ts'
export {
  AttestationRefused,
  AttestationUnavailable,
  ClientError,
  ReceiptRefused,
  type ClientErrorCode,
} from './errors.ts'
export { memoryState } from './memory-state.ts'
export { fileState } from './node/bundle-state.ts'
export type { BundleState, ClientOptions, ClientPolicy } from './options.ts'
export type { Proof } from './proof.ts'
export type { ReceiptOutcome } from './receipts.ts'

const DEPS: ClientDeps = {
  now: () => Date.now(),
  nonce: () => toHex(crypto.getRandomValues(new Uint8Array(32))),
}

/**
 * Makes a client of one router. Nothing is asked until the first request, or `verify()`.
 *
 * @param deps what it takes from its surroundings; for tests
 * @throws ClientError when the options cannot be used (`invalid_options`) or the runtime lacks what is needed
 *   (`unsupported_runtime`)
 */
export function createClient(options: ClientOptions, deps: ClientDeps = DEPS): Client {
  const settings = readOptions(options, deps)
  const state = options.state ?? fileState(defaultStatePath(process.env))
  return clientOver(settings, new TlsTransport(settings, state), options)
}
