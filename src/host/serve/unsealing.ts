import type { UnsealDocument } from '../../protocol/unseal.ts'
import type { DaemonRpc } from './daemon-rpc.ts'
import type { ServeLog } from './serve-log.ts'
import type { Start } from './start-plan.ts'
import type { LinkCertificates } from '../stack/link-certificates.ts'
import type { Parts } from '../stack/parts.ts'
import { StartError } from '../stack/start-error.ts'
import type { AdminApi } from '../stack/admin-api.ts'
import { DATA_DISK_FAULTS, DataDisk, type DataDiskPlaces } from '../sealed/data-disk.ts'
import { findRollback } from '../sealed/ledger-check.ts'
import { createDaemonLink, type DaemonLink } from '../sealed/daemon-link.ts'
import { openSealedServer, type SealedServer } from '../sealed/sealed-server.ts'

export interface UnsealingDeps {
  readonly parts: Parts
  readonly rpc: DaemonRpc
  readonly link: LinkCertificates
  /**
   * Plans the start with these secrets.
   * @throws StartError when the router cannot serve with these secrets
   */
  readonly plan: (secrets: UnsealDocument['secrets']) => Start
  /** Set where this machine may have a data disk. */
  readonly dataDisk: DataDiskPlaces | undefined
  readonly log: ServeLog
}

const ENGINE_CHANGED = 'the ledger cannot move to another storage while the router runs'

/** Receives the secrets of a router that started sealed, and later replacements. */
export class Unsealing {
  readonly #deps: UnsealingDeps
  readonly #daemon: DaemonLink
  #server: SealedServer | undefined
  readonly #disk: DataDisk | undefined
  /** The storage engine, once it is known. */
  #engine: Start['storage']['engine'] | undefined

  constructor(deps: UnsealingDeps) {
    this.#deps = deps
    this.#disk = deps.dataDisk && new DataDisk(deps.dataDisk)
    this.#daemon = createDaemonLink(deps.link, () => deps.parts.daemon?.linkPort)
  }

  /** Serves instead of the workers, with the attested TLS key. Resolves with its loopback ports. */
  async open(): Promise<SealedServer['ports']> {
    const { tls } = this.#deps.parts
    if (tls === undefined) throw new Error('the sealed server needs the daemon first')
    this.#server = await openSealedServer(tls, this.#daemon)
    return this.#server.ports
  }

  /**
   * Applies the secrets of a document and reports the result to the daemon.
   * @returns undefined if they were refused
   */
  async take(document: UnsealDocument): Promise<Start | undefined> {
    const { parts, log } = this.#deps
    const outcome = await this.#apply(document)
    const problem = typeof outcome === 'string' ? outcome : null
    parts.sendToDaemon({ type: 'unseal_answered', problem })
    if (typeof outcome !== 'string') return outcome
    const text = `  sealed   the secrets of a document were refused: ${outcome}`
    log(text, 'secrets_refused', outcome)
    return undefined
  }

  /** Must be called when workers serve. Warns when the ledger is behind the position in the document. */
  async opened({ ledger_position: expected }: UnsealDocument, admin: AdminApi): Promise<void> {
    this.close()
    const rollback = await findRollback(admin, expected)
    if (rollback === undefined) return
    this.#deps.log(`  !!!!!!!! ROLLBACK: ${rollback} !!!!!!!!`, 'ledger_behind', rollback)
  }

  close(): void {
    this.#server?.close()
    this.#daemon.close()
  }

  async #apply({ secrets, ledger_position: at }: UnsealDocument): Promise<Start | string> {
    const { parts, rpc, plan } = this.#deps
    try {
      const start = plan(secrets)
      const { adminToken, providerSecrets, storage } = start
      if (adminToken === null) return 'ADMIN_TOKEN: is missing'
      if ((this.#engine ?? storage.engine) !== storage.engine) return ENGINE_CHANGED
      const fault = await this.#openDisk(start, at)
      if (fault !== undefined) return fault
      const given = { adminToken, secrets: providerSecrets, storage }
      const refusal = await rpc.reloaded((id) => parts.offerSecrets(given, id))
      if (refusal !== null) return refusal
      parts.unsealed(given)
      this.#engine = storage.engine
      return start
    } catch (error) {
      return error instanceof StartError ? inOneLine(error.message) : 'the router failed on it'
    }
  }

  /** Opens the data disk before the workers start, because their ledger is on it. */
  async #openDisk({ dataDiskKey }: Start, at: number | undefined): Promise<string | undefined> {
    if (dataDiskKey === undefined || this.#disk === undefined) return undefined
    const fault = await this.#disk.open(dataDiskKey, at)
    return fault === undefined ? undefined : DATA_DISK_FAULTS[fault]
  }
}

/**
 * Joins the lines of a message, which has each reason on a line of its own; the operator's command and the log show one
 * line.
 */
function inOneLine(message: string): string {
  const [first, ...reasons] = message.split('\n').map((line) => line.trim())
  return [first, reasons.join('; ')].join(' ').trim()
}
