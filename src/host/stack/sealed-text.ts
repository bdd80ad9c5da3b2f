import { randomBytes } from 'node:crypto'

/**
 * Keeps secrets out of the files that a compiler reads. Each secret is replaced by random text of the same length;
 * Cap'n Proto stores text as plain bytes, so the real secrets can be inserted into the result.
 */
export class SealedText {
  readonly #secrets = new Map<string, string>()

  /** The placeholder for a secret (ASCII). */
  seal(secret: string): string {
    const length = Buffer.byteLength(secret)
    const placeholder = randomBytes(length).toString('base64url').slice(0, length)
    this.#secrets.set(placeholder, secret)
    return placeholder
  }

  /**
   * Inserts the secrets into the compiled bytes.
   * @throws Error when a placeholder does not occur exactly once
   */
  unseal(compiled: Buffer): Buffer {
    const unsealed = Buffer.from(compiled)
    for (const [placeholder, secret] of this.#secrets) {
      const at = unsealed.indexOf(placeholder, 0, 'latin1')
      if (at < 0 || unsealed.includes(placeholder, at + 1, 'latin1')) {
        throw new Error('a sealed text is not in the compiled configuration exactly once')
      }
      unsealed.write(secret, at)
    }
    return unsealed
  }
}
