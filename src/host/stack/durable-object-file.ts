import { createHash, createHmac } from 'node:crypto'

/** The namespace's key in workerd's configuration, which is also the name of its directory. */
export const STORE_KEY = 'cmr-ledger'

/** The one object of that namespace (`durable-object-storage.ts`). */
const OBJECT = 'ledger'

/** The file in which workerd stores the only Durable Object, relative to the directory of the ledger. */
export const DURABLE_OBJECT_FILE = `${STORE_KEY}/${objectId(STORE_KEY, OBJECT)}.sqlite`

/**
 * The files in which workerd stores the alarms of Durable Objects, one for each namespace, relative to the same directory.
 * Without one that it can read, it does not start.
 */
export const ALARM_FILES = '*/metadata.sqlite'

/**
 * Derives the id of a named object like workerd (`actor-id-impl.c++`): 16 bytes for the name, 16 for its
 * authentication.
 */
function objectId(uniqueKey: string, name: string): string {
  const key = createHash('sha256').update(uniqueKey).digest()
  const half = (data: string | Buffer) =>
    createHmac('sha256', key).update(data).digest().subarray(0, 16)
  const ofName = half(name)
  return Buffer.concat([ofName, half(ofName)]).toString('hex')
}
