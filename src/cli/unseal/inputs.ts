import { stat } from 'node:fs/promises'
import { z } from 'zod'
import { sha256Hex } from '../../protocol/digest.ts'
import { readInput, readJson } from '../verify/read-input.ts'
import { InputError } from '../verify/input-error.ts'

/** Permission bits of all users but the owner. */
const OTHER_USERS_MODE = 0o077

const secretsSchema = z.record(z.string(), z.string().min(1))

/**
 * A JSON object of secrets, from a file that only its owner can read.
 * @throws InputError when the file cannot be read, others can read it, or it is not an object of strings
 * @throws MalformedEvidence when it is not JSON
 */
export async function readSecretsFile(path: string): Promise<Record<string, string>> {
  if (path !== '-') await requirePrivate(path)
  const secrets = secretsSchema.safeParse(await readJson(path))
  if (secrets.success) return secrets.data
  throw new InputError(
    `${path} is no JSON object of texts, each the value of the variable it names`,
  )
}

/**
 * The SHA-256 of a configuration file in hex, as evidence binds it.
 * @throws InputError when the file cannot be read
 */
export async function digestOfConfiguration(path: string): Promise<string> {
  return sha256Hex(await readInput(path))
}

async function requirePrivate(path: string): Promise<void> {
  const status = await stat(path).catch(() => undefined)
  if (status !== undefined && (status.mode & OTHER_USERS_MODE) !== 0) {
    throw new InputError(`${path} can be read by others: chmod 600 it`)
  }
}
