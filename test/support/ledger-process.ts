import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LinkEnd } from '../../src/host/stack/link-binding.ts'
import { LEDGER_HOST, makeLinkCertificates } from '../../src/host/stack/link-certificates.ts'
import { startLedger } from '../../src/host/stack/start-ledger.ts'

/** A ledger process as the supervisor starts it. */
export interface LedgerProcess {
  readonly directory: string
  /** What its log file has. */
  readonly logFile: string
  readonly link: LinkEnd
  readonly pid: number
  /** Kills it and starts it again on the same port and files. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** A file that may not be there. */
export const OTHER_LEDGER = 'other.sqlite'

/** Runs a ledger without maintenance of its own, so that a test decides when that is. */
export const UNSWEPT_LEDGER = fileURLToPath(new URL('./unswept-ledger.ts', import.meta.url))

/**
 * Starts one on files of its own, which go with it.
 * @param program the module that it runs; the ledger's own unless given
 */
export async function startLedgerProcess(program?: string): Promise<LedgerProcess> {
  const home = mkdtempSync(join(tmpdir(), 'cmr-test-ledger-'))
  const logFile = join(home, 'ledger.log')
  const { server, worker } = await makeLinkCertificates(Date.now(), LEDGER_HOST)
  const start = (port: number) =>
    startLedger(
      {
        directory: home,
        others: [OTHER_LEDGER],
        link: {
          port,
          host: '127.0.0.1',
          serverCertPem: server.certPem,
          serverKeyPem: server.keyPem,
          workerCertPem: worker.certPem,
        },
      },
      logFile,
      program,
    )
  let { child, ready } = await start(0)
  const link = { port: ready, worker, serverCertPem: server.certPem, host: LEDGER_HOST }
  return {
    directory: home,
    logFile,
    link,
    get pid() {
      return child.pid
    },
    async restart() {
      child.process.kill('SIGKILL')
      await child.ended
      ;({ child, ready } = await start(link.port))
    },
    async stop() {
      child.process.kill('SIGKILL')
      await child.ended
      rmSync(home, { recursive: true, force: true })
    },
  }
}
