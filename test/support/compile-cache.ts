import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where Node keeps compiled modules, and sources without their types (nodejs.org/api/module.html, "Module compile cache"). */
const CACHE_VARIABLE = 'NODE_COMPILE_CACHE'

/**
 * Set-up of a whole test run: the processes that tests start by the hundred share what they compile. Without this each
 * stack and each command compiles all of its modules anew.
 * @returns what removes the cache in the end
 */
export function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-compiled-'))
  process.env[CACHE_VARIABLE] = directory
  return () => rmSync(directory, { recursive: true, force: true })
}
