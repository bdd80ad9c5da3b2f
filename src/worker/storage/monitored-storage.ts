import { StorageUnavailable, type Database, type Storage } from './database.ts'

/**
 * A storage that reports every failure of its engine to answer, with SQLite's own code, such as `SQLITE_FULL`, where
 * there is one.
 */
export function monitoredStorage(
  storage: Storage,
  onUnavailable: (failure: string) => void,
): Storage {
  const watched = (database: Database): Database => ({
    batch: async (statements) => {
      try {
        return await database.batch(statements)
      } catch (error) {
        if (error instanceof StorageUnavailable) onUnavailable(failureOf(error))
        throw error
      }
    },
  })
  const directory = watched(storage.directory())
  return {
    ...storage,
    customer: (id) => watched(storage.customer(id)),
    directory: () => directory,
  }
}

function failureOf({ message }: StorageUnavailable): string {
  return /\bSQLITE_[A-Z]+\b/.exec(message)?.[0] ?? 'unreachable'
}
