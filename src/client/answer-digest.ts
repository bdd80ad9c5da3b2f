import { sha256 } from '@noble/hashes/sha2.js'
import * as z from 'zod'
import { concatBytes, toHex } from '../protocol/bytes.ts'

/** The digest of an answer, as in its receipt. */
export interface DigestedAnswer {
  /** SHA-256 in hex: of the complete body, or of a stream's bytes before the event that names the receipt. */
  readonly sha256: string
  /** Absent where the answer names no receipt. */
  readonly receiptId?: string
}

/** Computes the digest of an answer while it is read. */
export interface AnswerDigest {
  update(bytes: Uint8Array): void
  /** Whether further bytes cannot change it. */
  readonly complete: boolean
  /** The digest of the bytes so far. */
  finish(): DigestedAnswer
}

const RECEIPT_HEADER = 'x-service-receipt-id'

/** For a larger body, the receipt id is read only from the header. */
const MAX_JSON_BYTES = 16 * 1024 * 1024

export function digestAnswer(headers: Headers): AnswerDigest {
  const named = headers.get(RECEIPT_HEADER) ?? undefined
  const type = headers.get('content-type') ?? ''
  return type.startsWith('text/event-stream') ? new StreamDigest(named) : new WholeDigest(named)
}

const latin1 = new TextDecoder('latin1')

class WholeDigest implements AnswerDigest {
  readonly complete = false
  readonly #hash = sha256.create()
  readonly #named: string | undefined
  readonly #parts: Uint8Array[] = []
  #size = 0

  constructor(named: string | undefined) {
    this.#named = named
  }

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes)
    this.#size += bytes.length
    if (this.#named === undefined && this.#size <= MAX_JSON_BYTES) this.#parts.push(bytes.slice())
  }

  finish(): DigestedAnswer {
    const whole = this.#size <= MAX_JSON_BYTES
    const text = whole ? new TextDecoder().decode(concatBytes(...this.#parts)) : ''
    return digested(this.#hash.clone().digest(), this.#named ?? receiptIn(text))
  }
}

const NEWLINE = 10
const RETURN = 13

class StreamDigest implements AnswerDigest {
  readonly #hash = sha256.create()
  #named: string | undefined
  /** The received part of an unfinished event. */
  #open: Uint8Array = new Uint8Array()
  #ended = false

  constructor(named: string | undefined) {
    this.#named = named
  }

  update(bytes: Uint8Array): void {
    if (this.#ended) return
    let rest: Uint8Array = this.#open.length === 0 ? bytes : concatBytes(this.#open, bytes)
    let from = Math.max(0, this.#open.length - 3)
    for (let end = endOfEvent(rest, from); end !== undefined; end = endOfEvent(rest, 0)) {
      if (this.#take(rest.subarray(0, end))) return
      rest = rest.subarray(end)
    }
    this.#open = rest.slice()
  }

  get complete(): boolean {
    return this.#ended
  }

  /**
   * Hashes an event, unless it names the receipt: that event and all later ones are excluded from the digest.
   * @returns whether it names the receipt
   */
  #take(event: Uint8Array): boolean {
    const text = latin1.decode(event)
    const data = /^data: ?(.*?)\r?\n/m.exec(text)?.[1] ?? ''
    if (data.includes('"service"') && carriesService(data)) {
      this.#named ??= receiptIn(data)
      this.#ended = true
      return true
    }
    this.#hash.update(event)
    return false
  }

  finish(): DigestedAnswer {
    const hash = this.#hash.clone()
    if (!this.#ended) hash.update(this.#open)
    return digested(hash.digest(), this.#named)
  }
}

/** The index after the blank line that ends an event. */
function endOfEvent(bytes: Uint8Array, from: number): number | undefined {
  for (let at = bytes.indexOf(NEWLINE, from); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
    if (bytes[at + 1] === NEWLINE) return at + 2
    if (bytes[at + 1] === RETURN && bytes[at + 2] === NEWLINE) return at + 3
  }
  return undefined
}

function digested(digest: Uint8Array, receiptId: string | undefined): DigestedAnswer {
  return { sha256: toHex(digest), ...(receiptId === undefined ? {} : { receiptId }) }
}

const carrierSchema = z.looseObject({ service: z.unknown() })
const namingSchema = z.looseObject({ service: z.looseObject({ receipt_id: z.string() }) })

function carriesService(json: string): boolean {
  const value = parse(json)
  return (
    carrierSchema.safeParse(value).success &&
    value !== null &&
    Object.hasOwn(value ?? {}, 'service')
  )
}

function receiptIn(json: string): string | undefined {
  const parsed = namingSchema.safeParse(parse(json))
  return parsed.success ? parsed.data.service.receipt_id : undefined
}

function parse(json: string): object | undefined {
  if (!json.startsWith('{')) return undefined
  try {
    const value: object = JSON.parse(json)
    return value
  } catch {
    return undefined
  }
}
