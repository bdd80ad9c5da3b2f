import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'

/** One request and its answer as bytes on the wire, after transfer decoding. Digests are hex SHA-256. */
export interface ExchangeEntry {
  readonly id: number
  readonly provider: string
  readonly method: string
  readonly path: string
  readonly request: Recorded & { readonly headers: IncomingHttpHeaders }
  readonly response: Recorded & {
    readonly status: number
    readonly headers: OutgoingHttpHeaders
    /** False when the connection ended before the answer did. */
    readonly complete: boolean
  }
}

interface Recorded {
  readonly sha256: string
  readonly bytes: number
  readonly base64: string
}

const MAX_ENTRIES = 500
const MAX_BYTES = 256 * 1024 * 1024

/** The last exchanges in memory, oldest dropped first, bounded in number and in bytes. */
export class ExchangeLog {
  #entries: ExchangeEntry[] = []
  #bytes = 0
  #nextId = 1

  add(exchange: Omit<ExchangeEntry, 'id'>): void {
    this.#entries.push({ id: this.#nextId++, ...exchange })
    this.#bytes += sizeOf(exchange)
    while (this.#entries.length > MAX_ENTRIES || this.#bytes > MAX_BYTES) {
      const dropped = this.#entries.shift()
      if (dropped === undefined) return
      this.#bytes -= sizeOf(dropped)
    }
  }

  /** Oldest first. */
  list(): readonly ExchangeEntry[] {
    return this.#entries
  }

  clear(): void {
    this.#entries = []
    this.#bytes = 0
  }
}

/** A body in the format of the log. */
export function recorded(chunks: readonly Buffer[]): Recorded {
  const body = Buffer.concat(chunks)
  return {
    sha256: createHash('sha256').update(body).digest('hex'),
    bytes: body.length,
    base64: body.toString('base64'),
  }
}

function sizeOf(exchange: Omit<ExchangeEntry, 'id'>): number {
  return exchange.request.bytes + exchange.response.bytes
}
