import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { stateDirMode } from './accounts.ts'
import { StartError } from './start-error.ts'
import { isBearerToken } from '../../protocol/bearer-token.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** The name of the lock file. */
const LOCK = 'lock'

/** A state directory that this process uses exclusively until it ends. */
export interface StateDir {
  readonly path: string
  /** An absolute path inside it. */
  file(name: string): string
  /**
   * A directory inside it, created if necessary.
   * @throws StartError when it cannot be created
   */
  directory(name: string): string
  read(name: string): string | undefined
  /** Replaces a file atomically, readable by the owner only. */
  write(name: string, text: string): void
  remove(name: string): void
}

/**
 * Creates the directory if necessary and locks it, because two workers on one directory would both write to it. The
 * lock is SQLite's own, because the kernel releases it when the process ends.
 * @throws StartError when another stack holds it, or when it cannot be created or written; the message says why
 */
export function openStateDir(path: string): StateDir {
  try {
    createDirectory(path)
    chmodSync(path, stateDirMode())
    lock(path)
  } catch (error) {
    if (error instanceof StartError) throw error
    const reason = messageOfThrown(error)
    throw new StartError(`${path} cannot be used as a state directory: ${reason}`, { cause: error })
  }
  const file = (name: string) => join(path, name)
  return {
    path,
    file,
    directory: (name) => {
      try {
        mkdirSync(file(name), { recursive: true, mode: 0o700 })
      } catch (error) {
        const reason = messageOfThrown(error)
        throw new StartError(`${path} cannot be used as a state directory: ${reason}`, {
          cause: error,
        })
      }
      return file(name)
    },
    read: (name) => readIfThere(file(name)),
    write: (name, text) => {
      writeFileSync(file(`${name}.new`), text, { mode: 0o600 })
      renameSync(file(`${name}.new`), file(name))
    },
    remove: (name) => rmSync(file(name), { force: true }),
  }
}

/**
 * A secret that is stored in a file of its own: the given one, else the stored one, else a new one.
 * @throws StartError when the stored one could not be sent as a bearer token
 */
export function storedSecret(state: StateDir, name: string, given: string | undefined): string {
  const stored = state.read(name)?.trim() ?? ''
  if (given === undefined && stored !== '' && !isBearerToken(stored)) {
    throw new StartError(`${state.file(name)} is damaged: remove it, and a new one is made`)
  }
  const made = stored === '' ? randomBytes(32).toString('base64url') : stored
  const secret = given ?? made
  state.write(name, `${secret}\n`)
  return secret
}

/**
 * Creates one level after another: `mkdirSync` with `recursive` never returns where the kernel lets nobody create a
 * directory (/proc).
 */
function createDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return
  if (dirname(path) !== path) createDirectory(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have just created it.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}

function lock(path: string): void {
  try {
    const database = new DatabaseSync(join(path, LOCK))
    chmodSync(join(path, LOCK), 0o600)
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    process.once('exit', () => database.close())
  } catch (error) {
    if (!isLocked(error)) throw error
    throw new StartError(
      `${path} is in use by another router: stop it, or name another state directory`,
    )
  }
}

/**
 * Whether a running program uses the directory. A `serving.json` or `local.json` that a killed program left behind
 * proves nothing.
 */
export function isInUse(path: string): boolean {
  const file = join(path, LOCK)
  if (!existsSync(file)) return false
  const database = new DatabaseSync(file)
  try {
    database.exec('BEGIN EXCLUSIVE')
    return false
  } catch (error) {
    if (isLocked(error)) return true
    throw error
  } finally {
    database.close()
  }
}

function isLocked(error: unknown): error is Error {
  return error instanceof Error && error.message.includes('locked')
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
