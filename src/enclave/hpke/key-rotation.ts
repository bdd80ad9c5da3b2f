import type { HpkeKey } from './hpke-key.ts'
import type { HpkeKeyring } from './hpke-keyring.ts'

/** How long a key stays current unless it is used up earlier, ms. */
const KEY_LIFE_MS = 12 * 3_600_000

/** Pause before the next attempt when the platform gave no report for the next key, ms. */
const RETRY_MS = 30_000

export interface RotationDeps {
  readonly keyring: HpkeKeyring
  readonly make: () => Promise<HpkeKey>
  /**
   * Puts evidence that names the next key into service.
   * @throws Error when no report can be captured
   */
  readonly prove: (configSha256: string) => Promise<void>
  readonly onFailure: (reason: string) => void
}

/**
 * Replaces the HPKE key twice a day, or sooner when its memory of uses, or one owner's share of it, fills up. The next
 * key comes into use once a report names it; until then the current one stays.
 */
export class KeyRotation {
  readonly #deps: RotationDeps
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #closed = false

  constructor(deps: RotationDeps) {
    this.#deps = deps
    this.#schedule(KEY_LIFE_MS)
  }

  /** Must be called after every use of the key. */
  used(): void {
    if (this.#deps.keyring.worn && this.#running === undefined) void this.rotate()
  }

  /** Replaces the key now; concurrent callers share one replacement. Never rejects. */
  rotate(): Promise<void> {
    this.#running ??= this.#replace()
    return this.#running
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #replace(): Promise<void> {
    const { keyring, make, prove, onFailure } = this.#deps
    try {
      const next = await make()
      await prove(next.configSha256)
      keyring.adopt(next)
      this.#running = undefined
      this.#schedule(KEY_LIFE_MS)
    } catch (error) {
      onFailure(error instanceof Error ? error.message : 'the next key could not be proven')
      this.#schedule(RETRY_MS)
    }
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      // A failed attempt counts as running until its pause is over, so that uses do not start another.
      this.#running = undefined
      void this.rotate()
    }, delayMs)
    this.#timer.unref()
  }
}
