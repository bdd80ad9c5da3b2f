import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { StartError } from '../stack/start-error.ts'
import type { StateDir } from '../stack/state-dir.ts'

export const SERVING_FILE = 'serving.json'

const servingSchema = z.object({
  http_url: z.string(),
  https_port: z.int(),
  /** Whether attestation is simulated. */
  simulated: z.boolean(),
  /** Whether the router waits for its secrets. */
  sealed: z.boolean().default(false),
  /** Path of the release root's public JWK. */
  root_key: z.string(),
  /** The supervisor's process id, for signals. */
  pid: z.int(),
  parts: z.record(z.string(), z.int()),
})

/** `serving.json`: the address of a serving router. It exists from readiness until the drain begins. */
export type ServingFile = z.output<typeof servingSchema>

export function writeServingFile(state: StateDir, serving: ServingFile): void {
  state.write(SERVING_FILE, `${JSON.stringify(serving, null, 2)}\n`)
}

/** @throws StartError when no router is serving on that state directory */
export function readServingFile(stateDir: string): ServingFile {
  const path = join(stateDir, SERVING_FILE)
  try {
    return servingSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    throw new StartError(`no router is serving here: ${path} is missing or not readable`, {
      cause: error,
    })
  }
}
