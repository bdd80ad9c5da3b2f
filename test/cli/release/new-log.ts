import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../../support/run-program.ts'

/** Runs `release log`. */
export const log = (...words: string[]) => run(['release', 'log', ...words])

/** Makes a folder with the key of a new log (`log.key`) and a document for it (`entry`). */
export async function newLog(): Promise<{ readonly folder: string; readonly verifierKey: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'cmr-log-commands-'))
  const key = join(folder, 'log.key')
  const { out } = await log('keygen', '--name', 'router.example/releases', '--private', key)
  writeFileSync(join(folder, 'entry'), 'an entry')
  return { folder, verifierKey: JSON.parse(out).verifier_key }
}
