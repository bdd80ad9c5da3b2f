import type { TlsMaterial } from '../../protocol/boot.ts'
import type { ServiceConfig } from '../../protocol/config.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'
import type { ListenAddress } from '../stack/listen-address.ts'
import type { StateDir } from '../stack/state-dir.ts'
import { ChainRefused, checkChain, isFor, readChainFile, validityOf } from './chain.ts'
import { makeCsr } from './csr.ts'
import type { DaemonRpc } from './daemon-rpc.ts'
import { replaceOrReport } from './replace-or-report.ts'

export interface CertificateDeps {
  readonly daemon: DaemonRpc
  readonly state: StateDir
  /** The address at which challenges are answered. */
  readonly challengeAt: ListenAddress
  /** Makes every listener use this key and chain. */
  readonly show: (tls: TlsMaterial) => Promise<void>
  readonly log: (text: string) => void
  readonly now: () => number
}

/** `service.tls`, or the chain file that the command line names instead. */
export type TlsSettings = Pick<
  NonNullable<ServiceConfig['tls']>,
  'domains' | 'acme_directory' | 'acme_email' | 'chain_file'
>

/** The certificate request (CSR) for the next key. */
export const CSR_FILE = 'tls.csr.pem'

const HOUR_MS = 3_600_000
/**
 * The wait after the first failed order, ms. It doubles with each further failure, to stay below Let's Encrypt's limit
 * of five failures an hour.
 */
const FIRST_RETRY_MS = 300_000
const MAX_TIMER_MS = 24 * HOUR_MS
/** The fraction of a certificate's lifetime after which the next one is ordered. */
const RENEW_AFTER = 2 / 3

/**
 * The key and the certificates of the public listeners. The daemon makes every key. A new certificate for the current
 * key only changes the listeners; a new key must be bound by a new attestation envelope before the listeners use it.
 */
export class Certificates {
  readonly #deps: CertificateDeps
  #criteria: TlsSettings
  #current: TlsMaterial
  /** A new key that is not in use yet, because its certificate has not been issued. */
  #prepared: TlsMaterial | undefined
  #timer: NodeJS.Timeout | undefined
  /** Orders that failed since the last one that succeeded. */
  #failures = 0
  #queue: Promise<void> = Promise.resolve()

  constructor(deps: CertificateDeps, criteria: TlsSettings, current: TlsMaterial) {
    this.#deps = deps
    this.#criteria = criteria
    this.#current = current
  }

  /** Writes the CSR, and obtains a certificate for the first key as configured. */
  start(): Promise<void> {
    return this.#enqueue(async () => {
      await this.#writeCsr(this.#current)
      if (this.#criteria.acme_directory !== undefined) await this.#order(() => this.#current)
      else await this.#readChain()
    })
  }

  /**
   * Reads the chain file again under the new configuration. Changed domains and a changed authority take effect now: in
   * the CSR, and in a certificate that is ordered for the key in service.
   */
  reload(criteria: TlsSettings): Promise<void> {
    return this.#enqueue(async () => {
      const before = this.#criteria
      this.#criteria = criteria
      const { acme_directory: directory, domains } = criteria
      const named = String(domains) !== String(before.domains)
      if (named) await this.#writeCsr(this.#prepared ?? this.#current)
      if (directory === undefined) {
        clearTimeout(this.#timer)
        await this.#readChain()
      } else if (named || directory !== before.acme_directory) {
        this.#failures = 0
        await this.#order(() => this.#current)
      }
    })
  }

  /**
   * Replaces the key: with ACME by ordering a certificate, with a chain file by writing a CSR for the operator to have
   * signed, else at once.
   */
  renew(): Promise<void> {
    return this.#enqueue(async () => {
      const { acme_directory: directory, chain_file: chain } = this.#criteria
      if (directory !== undefined) await this.#order(() => this.#nextKey())
      else if (chain !== undefined) this.#prepared = await this.#nextKey()
      else await this.#serve(await this.#deps.daemon.renewTls())
    })
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** Runs steps one after another; a failure is logged, and the current certificate stays in use. */
  #enqueue(step: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(step).catch((error: unknown) => {
      const reason = messageOfThrown(error)
      this.#deps.log(`  tls      ${reason}; the certificate in service stays`)
    })
    return this.#queue
  }

  async #readChain(): Promise<void> {
    const { chain_file: file, domains = [] } = this.#criteria
    if (file === undefined) return
    const chain = readChainFile(file)
    const keys = [this.#prepared, this.#current].filter((tls) => tls !== undefined)
    const owner = keys.find(({ keyPem }) => isFor(chain, keyPem))
    if (owner === undefined) {
      throw new ChainRefused(`${file} is for another key: have ${CSR_FILE} signed`)
    }
    if (chain === this.#current.certPem) return
    checkChain(chain, domains, this.#deps.now())
    await this.#move({ certPem: chain, keyPem: owner.keyPem })
  }

  /** A new key, not in use yet, and its CSR. */
  async #nextKey(): Promise<TlsMaterial> {
    const next = await this.#deps.daemon.prepareTls(this.#criteria.domains ?? [])
    await this.#writeCsr(next)
    return next
  }

  /**
   * Orders a certificate for the key that `obtain` returns. Any failure, also of `obtain`, is retried later with a new
   * key.
   */
  async #order(obtain: () => TlsMaterial | Promise<TlsMaterial>): Promise<void> {
    const { acme_directory: directory = '', acme_email: email, domains = [] } = this.#criteria
    const { state, challengeAt, now } = this.#deps
    try {
      const key = await obtain()
      // Loaded only now, so that the ACME client takes no memory where no authority is configured.
      const { acmeAccountKey, orderCertificate } = await import('./acme-order.ts')
      const account = { directory, email, keyPem: await acmeAccountKey(state) }
      const csr = await makeCsr(key.keyPem, domains)
      const certPem = await orderCertificate(account, csr, challengeAt)
      if (!isFor(certPem, key.keyPem)) throw new ChainRefused('the certificate is for another key')
      const validity = checkChain(certPem, domains, now())
      await this.#move({ certPem, keyPem: key.keyPem })
      this.#failures = 0
      this.#renewAt(validity.from + (validity.to - validity.from) * RENEW_AFTER)
    } catch (error) {
      this.#failures += 1
      this.#renewAt(now() + retryDelayMs(this.#failures))
      throw error
    }
  }

  /** Puts a key and certificate into service: first in the envelope, then in the listeners. */
  async #move(tls: TlsMaterial): Promise<void> {
    const sameKey = tls.keyPem === this.#current.keyPem
    await this.#serve(sameKey ? tls : await this.#deps.daemon.renewTls(tls))
  }

  async #serve({ certPem, keyPem }: TlsMaterial): Promise<void> {
    this.#current = { certPem, keyPem }
    this.#prepared = undefined
    await this.#writeCsr(this.#current)
    await this.#deps.show(this.#current)
    const until = new Date(validityOf(certPem).to).toISOString()
    this.#deps.log(`  tls      certificate in service until ${until}`)
  }

  /**
   * Writes the CSR. A failed write, as on a full disk, must not keep a key that is already bound from the listeners. Without
   * domains there is no CSR, and one of an earlier start is removed, because its key is gone.
   */
  async #writeCsr({ keyPem }: TlsMaterial): Promise<void> {
    const { domains } = this.#criteria
    const { state, log } = this.#deps
    if (domains === undefined) {
      state.remove(CSR_FILE)
      return
    }
    const csr = await makeCsr(keyPem, domains)
    replaceOrReport(
      CSR_FILE,
      () => state.write(CSR_FILE, csr),
      (text) => log(`  tls      ${text}`),
    )
  }

  #renewAt(at: number): void {
    clearTimeout(this.#timer)
    const wait = Math.max(at - this.#deps.now(), 0)
    const next = () => (wait > MAX_TIMER_MS ? this.#renewAt(at) : void this.renew())
    this.#timer = setTimeout(next, Math.min(wait, MAX_TIMER_MS))
    this.#timer.unref()
  }
}

/**
 * The pause before the next order after consecutive failed orders.
 * @param failures the number of consecutive failures, at least 1
 * @returns milliseconds, an hour at most
 */
export function retryDelayMs(failures: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), HOUR_MS)
}
