import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { replaceFile } from '../../client/node/replace-file.ts'
import { InputError } from '../verify/input-error.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/**
 * The last ledger position of each host. Stored between runs, so that the rollback of a ledger to an earlier state is
 * noticed.
 */
export class LedgerPositions {
  readonly #path: string
  readonly #positions: Map<string, number>
  /** Whether the file contains all current positions. */
  #isStored = true

  private constructor(path: string, positions: Map<string, number>) {
    this.#path = path
    this.#positions = positions
  }

  /**
   * Opens the file; an existing file that cannot be read is an error and is not replaced.
   * @throws InputError when the file cannot be read or is invalid
   */
  static async open(path: string): Promise<LedgerPositions> {
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
        return new LedgerPositions(path, new Map())
      }
      throw new InputError(`cannot read ${path}`, { cause: error })
    }
    try {
      const positions = z.record(z.string(), z.int().min(0)).parse(JSON.parse(text))
      return new LedgerPositions(path, new Map(Object.entries(positions)))
    } catch (error) {
      throw new InputError(`${path} is damaged; look into it before removing it`, { cause: error })
    }
  }

  of(host: string): number | undefined {
    return this.#positions.get(host)
  }

  /**
   * Stores the position of a host if it is not lower than the known one. A position that could not be stored, as on a
   * full disk, is stored by the next call for any host; otherwise a restarted broker would miss a rollback of that
   * ledger.
   * @returns the known position if it is higher than the given one; it is then kept
   * @throws PositionNotStored when the file cannot be replaced
   */
  async note(host: string, position: number): Promise<number | undefined> {
    const before = this.#positions.get(host) ?? 0
    if (position < before) return before
    if (position > before) {
      this.#positions.set(host, position)
      this.#isStored = false
    }
    if (!this.#isStored) this.#store()
    return undefined
  }

  #store(): void {
    const text = JSON.stringify(Object.fromEntries(this.#positions), null, 2)
    try {
      replaceFile(this.#path, `${text}\n`, 0o600)
      this.#isStored = true
    } catch (error) {
      throw new PositionNotStored(this.#path, error)
    }
  }
}

/** A new position is in memory but could not be written to the file. */
export class PositionNotStored extends Error {
  constructor(path: string, cause: unknown) {
    const reason = messageOfThrown(cause)
    super(`its ledger position cannot be stored in ${path}: ${reason}`, { cause })
    this.name = 'PositionNotStored'
  }
}
