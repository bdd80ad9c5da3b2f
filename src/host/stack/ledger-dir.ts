import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { LEDGER_FILE } from '../../protocol/ledger-link.ts'
import { isEmbedded, type StorageEngineName } from '../../protocol/storage-engines.ts'
import { DURABLE_OBJECT_FILE } from './durable-object-file.ts'
import { StartError } from './start-error.ts'
import type { StateDir } from './state-dir.ts'

/** Where the first versions stored a file for each customer. */
const LEGACY_LAYOUT = 'cmr-store'

/** Where each embedded engine has its ledger, below the directory. */
export const EMBEDDED_LEDGERS = {
  'durable-object': DURABLE_OBJECT_FILE,
  sqlite: LEDGER_FILE,
} as const satisfies Readonly<Partial<Record<StorageEngineName, string>>>

export type EmbeddedEngine = keyof typeof EMBEDDED_LEDGERS

/**
 * The directory in which an embedded engine has its file. There is at most one ledger in it: with a second one, rows and
 * balances would depend on the setting of the day.
 * @throws StartError when there is a ledger of the other embedded engine, or one of an earlier version
 */
export function ledgerDir(state: Pick<StateDir, 'directory'>, engine: StorageEngineName): string {
  const directory = state.directory('storage')
  const earlier = join(directory, LEGACY_LAYOUT)
  if (existsSync(earlier)) {
    throw new StartError(
      `${earlier} holds a ledger of an earlier version, with a file for each customer, which this one cannot read: ` +
        'go on with that version, or move the folder away to begin anew',
    )
  }
  if (!isEmbedded(engine)) return directory
  for (const [name, file] of Object.entries(EMBEDDED_LEDGERS)) {
    if (name === engine || !existsSync(join(directory, file))) continue
    const workers = name === 'durable-object' ? ', with one worker' : ''
    const move = `npm run serve -- move-ledger --to ${engine} --state-dir ${dirname(directory)}`
    throw new StartError(
      `${join(directory, file)} is the ledger of STORAGE=${name}, and this start is for STORAGE=${engine}: ` +
        `set STORAGE=${name}${workers}, or move it with "${move}"`,
    )
  }
  return directory
}
