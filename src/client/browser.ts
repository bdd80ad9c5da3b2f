import { clientOver, type Client } from './client.ts'
import { EhbpTransport } from './ehbp-transport.ts'
import { ClientError } from './errors.ts'
import { memoryState } from './memory-state.ts'
import { readOptions, type ClientDeps, type ClientOptions } from './options.ts'
import { storageState } from './storage-state.ts'
import { RUNTIME_DEPS } from './runtime-deps.ts'

/**
 * `confidential-model-router/client` for browsers and other runtimes without Node's modules: a `fetch` that verifies
 * the router first, and encrypts bodies to a key named in its evidence.
 */

export type { Client, Receipts } from './client.ts'
export {
  AnswerRefused,
  AttestationRefused,
  AttestationUnavailable,
  ClientError,
  ReceiptRefused,
  type ClientErrorCode,
} from './errors.ts'
export { memoryState } from './memory-state.ts'
export { storageState } from './storage-state.ts'
export type { BundleState, ClientOptions, ClientPolicy, TransportName } from './options.ts'
export type { Proof } from './proof.ts'
export type { ReceiptOutcome } from './receipt-outcome.ts'

/**
 * Creates a client of one router. No request is made until the first `fetch` or `verify()`. The newest trust bundle is
 * stored in `localStorage` where available.
 *
 * @param deps the clock and randomness; for tests
 * @throws ClientError when the options cannot be used (`invalid_options`), or for `transport: 'tls'`, because a page
 *   cannot see the TLS key of its connection (`unsupported_runtime`)
 */
export function createClient(options: ClientOptions, deps: ClientDeps = RUNTIME_DEPS): Client {
  if (options.transport === 'tls') {
    throw new ClientError('unsupported_runtime', 'this runtime hides the connection: use "ehbp"')
  }
  const settings = readOptions(options, deps)
  const state = options.state ?? usualState()
  return clientOver(settings, { transport: new EhbpTransport(settings, state), state }, options)
}

function usualState() {
  try {
    return 'localStorage' in globalThis ? storageState(globalThis.localStorage) : memoryState()
  } catch {
    // In a sandboxed frame, even reading the property throws.
    return memoryState()
  }
}
