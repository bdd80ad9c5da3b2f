import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { replaceFile } from '../../client/node/replace-file.ts'
import { InputError } from '../verify/input-error.ts'

/**
 * The last ledger position of each host, stored between runs: without it a restored earlier ledger would not be
 * noticed.
 */
export class LedgerPositions {
  readonly #path: string
  readonly #positions: Map<string, number>

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
   * Stores the position.
   * @returns the former one where that was higher; it is then kept
   */
  async note(host: string, position: number): Promise<number | undefined> {
    const before = this.#positions.get(host) ?? 0
    if (position < before) return before
    if (position > before) {
      this.#positions.set(host, position)
      const text = JSON.stringify(Object.fromEntries(this.#positions), null, 2)
      replaceFile(this.#path, `${text}\n`, 0o600)
    }
    return undefined
  }
}
