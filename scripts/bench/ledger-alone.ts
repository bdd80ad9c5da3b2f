import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { LedgerPart } from '../../src/host/stack/ledger-part.ts'
import { makeLedgerKeys } from './ledger-keys.ts'
import type { LedgerPlan } from './ledger-plan.ts'
import { LoadGenerator } from './load.ts'
import { cpuTimesUs, mainThreadCpuUs } from './processes.ts'
import { LEDGER, WRITER, type System } from './system.ts'

export const LEDGER_ALONE = 'ledger alone, 16 connections'

/** All other threads of the ledger process: for queries, cryptography and JIT compilation. */
const OTHER_THREADS = 'other threads'

const STOP_TIMEOUT_MS = 3_000

/**
 * Starts a ledger process as the stack does, with files of its own, and a driver process in place of the workers. The
 * driver calls the ledger without pause, so that its writer thread is always busy.
 */
export async function startLedgerAlone(scratch: string, customers: number): Promise<System> {
  const directory = join(scratch, 'ledger-alone')
  mkdirSync(directory)
  const part = new LedgerPart()
  const { child } = await part.start(directory, join(directory, 'ledger.log'))
  const { link } = part
  if (link === undefined) throw new Error('internal error: a ledger without a link')
  const { port, worker, serverCertPem, host = '' } = link
  const keys = [...(await makeLedgerKeys(link, customers))]
  const driver = new LoadGenerator<LedgerPlan>('ledger-driver.ts')
  return {
    name: LEDGER_ALONE,
    port,
    processes: () => ({ [LEDGER]: [child.pid] }),
    cpuTimesUs: () => {
      const { [LEDGER]: whole = Number.NaN } = cpuTimesUs({ [LEDGER]: [child.pid] })
      const writer = mainThreadCpuUs(child.pid)
      return { [WRITER]: writer, [OTHER_THREADS]: whole - writer }
    },
    load: {
      run: ({ connections, warmMs, windowMs }, hooks) =>
        driver.run(
          { link: { port, worker, serverCertPem, host }, keys, connections, warmMs, windowMs },
          hooks,
        ),
    },
    callers: [],
    model: (behaviour) => behaviour,
    async stop() {
      await driver.stop()
      await child.stop(STOP_TIMEOUT_MS)
    },
  }
}
