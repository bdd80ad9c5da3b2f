import { createKeyring } from './auth/keyring.ts'
import type { BatchDeps } from './batching/batcher.ts'
import { Readiness } from './batching/readiness.ts'
import type { Context } from './context.ts'
import type { Env } from './env.ts'
import { ApiError } from './http/errors.ts'
import type { Log } from './http/log.ts'
import type { Link } from './link/link.ts'
import { pause } from './routing/budget.ts'
import type { RuntimeDeps } from './runtime-deps.ts'
import { ReceiptHeads } from './settle/receipt-heads.ts'
import { SigningKeyLog } from './settle/signing-key-log.ts'
import { monitoredStorage } from './storage/monitored-storage.ts'
import { engineOf, openStorage } from './storage/open.ts'
import { confirmReadable } from './storage/readable.ts'

/** The storage and the services that use it. */
export type StorageParts = Pick<
  Context,
  'storage' | 'readiness' | 'keyring' | 'signingKeys' | 'receiptHeads'
>

const notReady = () =>
  new ApiError('service_unavailable', 'The storage or the enclave does not answer in time.', {
    retryAfter: 2,
  })

interface StoragePartsDeps extends RuntimeDeps, BatchDeps {
  readonly link: Link
  readonly log: Log
}

/**
 * Opens the storage that the environment names. It sends no query yet.
 * @throws StorageUnavailable when the engine is unknown or a binding it needs is missing
 */
export function openStorageParts(env: Env, deps: StoragePartsDeps): StorageParts {
  const { link, log, now, randomBytes } = deps
  const failed = (failure: string) => log('storage_unavailable', { failure })
  const rowWaited = (ms: number) => log('row_waited', { duration_ms: ms })
  const messagesEnded = (count: number) => log('link_messages_ended', { count })
  const host = { ...deps, rowWaited, messagesEnded }
  const engine = engineOf(env)
  const storage = monitoredStorage(openStorage(env, host), failed)
  const signingKeys = new SigningKeyLog(link, storage, now)
  const check = async () => {
    const readable = confirmReadable(storage.directory(), engine)
    await Promise.all([signingKeys.rememberLive(), readable])
  }
  return {
    storage,
    readiness: new Readiness({ now, pause, check, timeoutError: notReady }),
    keyring: createKeyring(storage, { random: randomBytes, now }),
    signingKeys,
    receiptHeads: new ReceiptHeads(storage, now),
  }
}
