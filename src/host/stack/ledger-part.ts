import { DURABLE_OBJECT_FILE } from './durable-object-file.ts'
import type { LinkEnd } from './link-binding.ts'
import { LEDGER_HOST, makeLinkCertificates, type LinkCertificates } from './link-certificates.ts'
import type { Started } from './process-restarter.ts'
import { startLedger } from './start-ledger.ts'

/** The ledger process, whose port and certificates stay the same when it is restarted. */
export class LedgerPart {
  #link: LinkEnd | undefined
  #certificates: LinkCertificates | undefined

  /** The workers' link to the process, once it was started. */
  get link(): LinkEnd | undefined {
    return this.#link
  }

  /**
   * Starts the process.
   * @returns the port of its link
   * @throws Error when it refuses to start, with its reason
   */
  async start(directory: string, logFile: string): Promise<Started<number>> {
    this.#certificates ??= await makeLinkCertificates(Date.now(), LEDGER_HOST)
    const { server, worker } = this.#certificates
    const boot = {
      directory,
      // The process itself looks for the ledger of another engine: unlike this one, it runs under the account that may
      // read the directory.
      others: [DURABLE_OBJECT_FILE],
      link: {
        port: this.#link?.port ?? 0,
        host: '127.0.0.1' as const,
        serverCertPem: server.certPem,
        serverKeyPem: server.keyPem,
        workerCertPem: worker.certPem,
      },
    }
    const started = await startLedger(boot, logFile)
    this.#link = { port: started.ready, worker, serverCertPem: server.certPem, host: LEDGER_HOST }
    return started
  }
}
