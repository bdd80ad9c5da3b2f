import { describeLedgerContract } from '../settle/ledger-contract.ts'
import { openEmbedded } from '../../support/sqlite-store.ts'
import { sharedStorage } from '../../support/sqlite-database.ts'

describeLedgerContract('the embedded ledger over SQLite in Node', async () => {
  const db = await openEmbedded()
  const storage = sharedStorage(db)
  return { instances: [storage, storage], stop: async () => db.connection.close() }
})
