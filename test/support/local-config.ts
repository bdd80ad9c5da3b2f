import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

/** The configuration of a local stack, parsed, for tests to change. */
export function localConfig() {
  return JSON.parse(readFileSync(join(PROJECT_DIR, 'config/local.json'), 'utf8'))
}
