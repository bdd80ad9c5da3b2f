import { existsSync, globSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { LEDGER_FILE } from '../../protocol/ledger-link.ts'
import { isEmbedded, type StorageEngineName } from '../../protocol/storage-engines.ts'
import { ALARM_FILES, DURABLE_OBJECT_FILE } from './durable-object-file.ts'
import { refuseDamagedAlarms, refuseDamagedLedger } from './damaged-ledger.ts'
import { StartError } from './start-error.ts'
import type { StateDir } from './state-dir.ts'

/** Where the first versions stored a file for each customer. */
const LEGACY_LAYOUT = 'cmr-store'

/** The file of each embedded engine's ledger, relative to the directory. */
export const EMBEDDED_LEDGERS = {
  'durable-object': DURABLE_OBJECT_FILE,
  sqlite: LEDGER_FILE,
} as const satisfies Readonly<Partial<Record<StorageEngineName, string>>>

export type EmbeddedEngine = keyof typeof EMBEDDED_LEDGERS

/** The file that marks a state directory from which a router in production has served with an embedded ledger. */
export const LEDGER_MARK = 'ledger-in-use'

const MARK_TEXT = `A router has served from the ledger below storage/, and does not start without it.
To begin with an empty ledger, remove this file.
`

/**
 * The directory in which an embedded engine has its file. There must be at most one ledger in it: with two, rows and
 * balances would depend on the current setting.
 * @throws StartError when there is a ledger of the other embedded engine, or one of an earlier version, or none where
 *   there was one
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
  const mark = join(dirname(directory), LEDGER_MARK)
  const file = join(directory, EMBEDDED_LEDGERS[engine])
  const found = lookFor(file)
  if (existsSync(mark) && found === 'hidden') {
    throw new StartError(
      `${file}, the ledger, cannot be looked at: have the files below ${directory} belong to the account of the router`,
    )
  }
  if (existsSync(mark) && found === 'missing') {
    throw new StartError(
      `${file}, the ledger, is missing, and a router has served from it: put it back, or restore a backup; ` +
        `to begin with an empty ledger, remove ${mark}`,
    )
  }
  return directory
}

/** Records that a router serves with this engine, so that its file must exist from now on. */
export function markLedger(
  state: Pick<StateDir, 'directory' | 'write'>,
  engine: StorageEngineName,
): void {
  if (!isEmbedded(engine)) return
  const file = join(state.directory('storage'), EMBEDDED_LEDGERS[engine])
  // Not in a guest: there only the account of the workers can see the file, and the state directory ends with the
  // machine.
  if (lookFor(file) === 'there') state.write(LEDGER_MARK, MARK_TEXT)
}

/** @throws StartError when a file of this engine is damaged; the message names it */
export function refuseDamage(state: Pick<StateDir, 'directory'>, engine: StorageEngineName): void {
  if (!isEmbedded(engine)) return
  const directory = ledgerDir(state, engine)
  refuseDamagedLedger(join(directory, EMBEDDED_LEDGERS[engine]))
  if (engine !== 'durable-object') return
  for (const file of globSync(ALARM_FILES, { cwd: directory })) {
    refuseDamagedAlarms(join(directory, file))
  }
}

/**
 * Whether the file has a ledger. SQLite treats an empty file like a missing one. `hidden`: this process may not look.
 */
function lookFor(file: string): 'there' | 'missing' | 'hidden' {
  try {
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
    return size > 0 ? 'there' : 'missing'
  } catch {
    return 'hidden'
  }
}
