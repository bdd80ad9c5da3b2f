import { fileURLToPath } from 'node:url'
import type { FromLedger, LedgerBoot } from '../../protocol/ledger-link.ts'
import { startChild } from './child.ts'
import { firstMessage } from './first-message.ts'
import { nodeProgram } from './node-program.ts'
import type { Started } from './process-restarter.ts'

const LEDGER = fileURLToPath(new URL('../../ledger/main.ts', import.meta.url))

/**
 * Starts the ledger process under the account of the workers, whose directory it writes.
 * @param program the module that it runs; tests run one without maintenance
 * @returns the port of its link
 * @throws Error when it refuses, with its reason; its process has ended then
 */
export async function startLedger(
  boot: LedgerBoot,
  logFile: string,
  program = LEDGER,
): Promise<Started<number>> {
  const child = await startChild({
    account: 'worker',
    ...nodeProgram(program),
    logFile,
    stdin: 'ignore',
    extra: 'ipc',
  })
  const answer = firstMessage<FromLedger>(child)
  child.process.send(boot, () => {})
  const message = await answer
  if (message.type === 'ready') return { child, ready: message.port }
  await child.stop(0)
  throw new Error(message.reason)
}
