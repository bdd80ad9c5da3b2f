import { clientOver, type Client } from './client.ts'
import { EhbpTransport } from './ehbp-transport.ts'
import { defaultStatePath, fileState } from './node/bundle-state.ts'
import { TlsTransport } from './node/tls-transport.ts'
import { usualTransport } from './node/usual-transport.ts'
import { readOptions, type ClientDeps, type ClientOptions, type TransportName } from './options.ts'
import { RUNTIME_DEPS } from './runtime-deps.ts'

/**
 * `confidential-model-router/client` for Node: a `fetch` that verifies the router before it sends the first byte of a
 * request, on the connection that carries it.
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
export { fileState } from './node/bundle-state.ts'
export { storageState } from './storage-state.ts'
export type { BundleState, ClientOptions, ClientPolicy, TransportName } from './options.ts'
export type { Proof } from './proof.ts'
export type { ReceiptOutcome } from './receipt-outcome.ts'

const TRANSPORTS = { tls: TlsTransport, ehbp: EhbpTransport } as const satisfies Record<
  TransportName,
  unknown
>

/**
 * Creates a client of one router. No request is made until the first `fetch` or `verify()`.
 * @param deps the clock and randomness; for tests
 * @throws ClientError when the options are invalid (`invalid_options`) or the runtime lacks a required feature
 *   (`unsupported_runtime`)
 */
export function createClient(options: ClientOptions, deps: ClientDeps = RUNTIME_DEPS): Client {
  const settings = readOptions(options, deps)
  const state = options.state ?? fileState(defaultStatePath(process.env))
  const Chosen = TRANSPORTS[options.transport ?? usualTransport(process.versions['bun'])]
  return clientOver(settings, { transport: new Chosen(settings, state), state }, options)
}
