import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { AMD_NAMES, type Product } from '../../verify/snp/product.ts'
import type { Tcb, TcbComponent } from '../../verify/snp/tcb.ts'
import { CaptureError } from './capture-error.ts'

/** AMD's key distribution service (AMD 57230): public certificates of chips, and of the authorities above them. */
export interface Kds {
  /**
   * The VCEK of a chip at a TCB, in DER.
   * @throws CaptureError `no_chain` when the service does not answer with one, or its rate limit forbids the call
   */
  vcek(chip: ChipKey): Promise<Bytes>
  /**
   * ASK (or ASVK) and ARK of a product, in PEM.
   * @throws CaptureError `no_chain` when the service does not answer with them, or asked to wait
   */
  authorities(product: Product, kind: 'vcek' | 'vlek'): Promise<Bytes>
  /**
   * The revocation list of a product's root, in DER.
   * @throws CaptureError `no_chain` when the service does not answer with one, or asked to wait
   */
  revocationList(product: Product, kind: 'vcek' | 'vlek'): Promise<Bytes>
}

export interface ChipKey {
  readonly product: Product
  /** CHIP_ID from the report, 64 bytes. */
  readonly chipId: Bytes
  readonly tcb: Tcb
}

/**
 * Gets a URL without following redirects.
 * @throws Error when the network fails or the request times out
 */
export type Fetcher = (url: string) => Promise<FetchedFile>

export interface FetchedFile {
  readonly status: number
  /** The header's raw value. */
  readonly retryAfter: string | undefined
  readonly body: Bytes
}

const KDS_URL = 'https://kdsintf.amd.com'

/** The service allows each address one VCEK request in this time, and answers 429 to others, ms. */
const VCEK_SPACING_MS = 10_000
const MAX_RETRY_AFTER_MS = 600_000
const DEFAULT_RETRY_AFTER_MS = 60_000

const SPL_NAMES: readonly (readonly [TcbComponent, string])[] = [
  ['fmc', 'fmcSPL'],
  ['bootloader', 'blSPL'],
  ['tee', 'teeSPL'],
  ['snp', 'snpSPL'],
  ['microcode', 'ucodeSPL'],
]

/**
 * When the service may be asked again for anything, and for a VCEK, ms. Its memory is shared, because the limit is one
 * for all threads of the daemon.
 */
export type KdsWaits = BigInt64Array<SharedArrayBuffer>

const FOR_ANYTHING = 0
const FOR_VCEK = 1

export function newKdsWaits(): KdsWaits {
  return new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT))
}

/**
 * Calls that the rate limit forbids fail at once and are not sent.
 * @param now milliseconds
 */
export function createKds(fetchFile: Fetcher, now: () => number, waits: KdsWaits): Kds {
  /** Whether that time is yet to come; one that is further ahead than any wait was set before the clock was set back. */
  function isAhead(time: bigint, longestMs: number): boolean {
    const left = Number(time) - now()
    return left > 0 && left <= longestMs
  }

  async function get(path: string): Promise<Bytes> {
    if (isAhead(Atomics.load(waits, FOR_ANYTHING), MAX_RETRY_AFTER_MS)) {
      throw new CaptureError('no_chain', "AMD's key service asked to wait")
    }
    const { status, body, retryAfter } = await fetchFile(`${KDS_URL}${path}`).catch((cause) => {
      throw new CaptureError('no_chain', "AMD's key service cannot be reached", { cause })
    })
    if (status === 200) return body
    if (status === 429 || status === 503) {
      const until = now() + readRetryAfter(retryAfter, now())
      Atomics.store(waits, FOR_ANYTHING, BigInt(until))
    }
    throw new CaptureError('no_chain', `AMD's key service answered ${status}`)
  }

  /** Whether a VCEK may be asked for; of threads that ask at the same time, only one may. */
  function takeTurn(): boolean {
    const from = Atomics.load(waits, FOR_VCEK)
    const next = BigInt(now() + VCEK_SPACING_MS)
    if (isAhead(from, VCEK_SPACING_MS)) return false
    return Atomics.compareExchange(waits, FOR_VCEK, from, next) === from
  }

  return {
    async vcek(chip) {
      if (!takeTurn()) throw new CaptureError('no_chain', "AMD's key service was just asked")
      return get(vcekPath(chip))
    },
    authorities: (product, kind) => get(`/${kind}/v1/${AMD_NAMES[product]}/cert_chain`),
    revocationList: (product, kind) => get(`/${kind}/v1/${AMD_NAMES[product]}/crl`),
  }
}

/** Turin's chip id has eight bytes, and the service accepts only that form. */
function vcekPath({ product, chipId, tcb }: ChipKey): string {
  const id = toHex(product === 'turin' ? chipId.subarray(0, 8) : chipId)
  const levels = SPL_NAMES.flatMap(([component, name]) => {
    const level = tcb[component]
    return level === undefined ? [] : [`${name}=${String(level).padStart(2, '0')}`]
  })
  return `/vcek/v1/${AMD_NAMES[product]}/${id}?${levels.join('&')}`
}

/** Seconds or a date (RFC 9110 section 10.2.3), bounded. */
function readRetryAfter(header: string | undefined, now: number): number {
  const text = header?.trim() ?? ''
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  if (!Number.isFinite(wait)) return DEFAULT_RETRY_AFTER_MS
  return Math.min(Math.max(wait, VCEK_SPACING_MS), MAX_RETRY_AFTER_MS)
}
