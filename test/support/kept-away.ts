import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Keeps a part of a router from coming up again once it has died: a folder lies where its log is to be opened. A process
 * that runs goes on writing into its log.
 * @returns lets it come up again
 */
export function keepAway(stateDir: string, part: 'enclave'): () => void {
  const log = join(stateDir, 'log', `${part}.log`)
  const aside = `${log}.aside`
  renameSync(log, aside)
  mkdirSync(log)
  return () => {
    rmdirSync(log)
    renameSync(aside, log)
  }
}
