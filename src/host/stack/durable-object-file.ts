import { createHash, createHmac } from 'node:crypto'

/** The namespace's key in workerd's configuration, and so the name of the directory of its files. */
export const STORE_KEY = 'cmr-ledger'

/** The one object of that namespace (`durable-object-storage.ts`). */
const OBJECT = 'ledger'

/** The file in which workerd has the rows of the one Durable Object, below the directory of the ledger. */
export const DURABLE_OBJECT_FILE = `${STORE_KEY}/${objectId(STORE_KEY, OBJECT)}.sqlite`

/** The id of a named object as workerd derives it (workerd, `actor-id-impl.c++`): 16 bytes of the name, 16 of proof. */
function objectId(uniqueKey: string, name: string): string {
  const key = createHash('sha256').update(uniqueKey).digest()
  const half = (data: string | Buffer) =>
    createHmac('sha256', key).update(data).digest().subarray(0, 16)
  const ofName = half(name)
  return Buffer.concat([ofName, half(ofName)]).toString('hex')
}
