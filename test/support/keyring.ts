import { createKeyring, type Keyring } from '../../src/worker/auth/keyring.ts'
import type { Storage } from '../../src/worker/storage/database.ts'

/** A keyring of its own on a storage, with the machine's clock and random numbers. */
export function openKeyring(storage: Storage): Keyring {
  return createKeyring(storage, {
    random: (length) => crypto.getRandomValues(new Uint8Array(length)),
    now: Date.now,
  })
}
