import { mkdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import * as z from 'zod'
import { es256JwkSchema, jwkThumbprint } from '../../protocol/jwk.ts'
import { ClientError } from '../errors.ts'
import { keptBundleSchema, mayReplace } from '../kept-bundle.ts'
import type { BundleState, StoredBundle } from '../options.ts'
import { withFileLock } from './file-lock.ts'
import { replaceFile } from './replace-file.ts'

/**
 * The last accepted bundle of each release root, stored between runs: without it an attacker could present an older
 * bundle, and a receipt could not be checked for later revocations. A file that cannot be read is an error and is not
 * replaced.
 */

const stateSchema = z.record(z.string(), keptBundleSchema)

type State = z.output<typeof stateSchema>

/**
 * The default path of the state file. For a user without a home directory, as in some containers, it is below `/`: if
 * nothing can be stored there, that is an error only when the file is needed.
 */
export function defaultStatePath(
  environment: Readonly<Record<string, string | undefined>>,
  home: () => string = homedir,
): string {
  const base = environment['XDG_STATE_HOME'] ?? join(homeOr('/', home), '.local', 'state')
  return join(base, 'confidential-model-router', 'trust-bundles.json')
}

function homeOr(otherwise: string, home: () => string): string {
  try {
    return home()
  } catch {
    return otherwise
  }
}

/**
 * The last accepted bundle of a root; undefined for the path `none`.
 * @throws ClientError when the stored state cannot be read or is damaged
 */
export async function readAcceptedBundle(
  path: string,
  rootJwk: unknown,
): Promise<StoredBundle | undefined> {
  const root = es256JwkSchema.safeParse(rootJwk)
  if (path === 'none' || !root.success) return undefined
  const thumbprint = await jwkThumbprint(root.data)
  const accepted = (await readState(path))[thumbprint]
  return accepted && { root: thumbprint, ...accepted }
}

/**
 * Stores a bundle instead of the previous one, unless the previous one is newer. Concurrent writers, also in other
 * programs, store one after the other.
 * @throws ClientError when the stored state cannot be used
 */
export async function writeAcceptedBundle(path: string, accepted: StoredBundle): Promise<void> {
  if (path === 'none') return
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    let isStored = false
    while (!isStored) {
      // Repeats only if the lock was lost in the meantime.
      isStored = await withFileLock(path, (isHeld) => storeNewer(path, accepted, isHeld))
    }
  } catch (error) {
    if (error instanceof ClientError) throw error
    throw new ClientError('bundle_state', `cannot write the state file ${path}`, { cause: error })
  }
}

/** @returns false where another program may have changed the file since it was read; nothing is stored then */
async function storeNewer(
  path: string,
  { root, ...kept }: StoredBundle,
  isHeld: () => Promise<boolean>,
): Promise<boolean> {
  const state = await readState(path)
  if (!mayReplace(state[root], kept)) return true
  const text = JSON.stringify({ ...state, [root]: kept }, null, 2)
  if (!(await isHeld())) return false
  replaceFile(path, `${text}\n`, 0o600)
  return true
}

async function readState(path: string): Promise<State> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    throw new ClientError('bundle_state', `cannot read the state file ${path}`, { cause: error })
  }
  try {
    return stateSchema.parse(JSON.parse(text))
  } catch (error) {
    throw new ClientError(
      'bundle_state',
      `the state file ${path} is damaged; look into it before removing it`,
      {
        cause: error,
      },
    )
  }
}

/** State in a file, for `createClient`; all programs of this user that name the same file share it. */
export function fileState(path: string): BundleState {
  return {
    read: (rootJwk) => readAcceptedBundle(path, rootJwk),
    write: (accepted) => writeAcceptedBundle(path, accepted),
  }
}
