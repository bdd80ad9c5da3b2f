import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { StartError } from './start-error.ts'
import type { StateDir } from './state-dir.ts'

export const LOCAL_FILE = 'local.json'

const localFileSchema = z.object({
  base_url: z.string(),
  tls_base_url: z.string(),
  api_key: z.string(),
  customer_id: z.string(),
  admin_token: z.string(),
  /** Path of the release root's public JWK. */
  root_key: z.string(),
  /** The supervisor's process id: signals go there. */
  pid: z.int(),
  pids: z.object({
    worker: z.int(),
    enclave: z.int(),
    standin: z.int().optional(),
    ledger: z.int().optional(),
  }),
})

/** `local.json`: the address of a running stack, for programs. It exists only while every part answers. */
export type LocalFile = z.output<typeof localFileSchema>

export function writeLocalFile(state: StateDir, local: LocalFile): void {
  state.write(LOCAL_FILE, `${JSON.stringify(local, null, 2)}\n`)
}

/** @throws StartError when no stack is running on that state directory */
export function readLocalFile(stateDir: string): LocalFile {
  const path = join(stateDir, LOCAL_FILE)
  try {
    return localFileSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    const next = 'start one with "npm start", or name its state directory in STATE_DIR'
    throw new StartError(`no router is running here: ${path} is missing or not readable; ${next}`, {
      cause: error,
    })
  }
}
