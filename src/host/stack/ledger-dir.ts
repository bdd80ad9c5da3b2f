import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from './start-error.ts'
import type { StateDir } from './state-dir.ts'

/** Where the first versions stored a file for each customer. */
const LEGACY_LAYOUT = 'cmr-store'

/**
 * The directory in which the Durable Object has its file.
 * @throws StartError when an earlier version left a ledger behind that this one cannot read
 */
export function ledgerDir(state: Pick<StateDir, 'directory'>): string {
  const directory = state.directory('storage')
  const earlier = join(directory, LEGACY_LAYOUT)
  if (existsSync(earlier)) {
    throw new StartError(
      `${earlier} holds a ledger of an earlier version, with a file for each customer, which this one cannot read: ` +
        'go on with that version, or move the folder away to begin anew',
    )
  }
  return directory
}
