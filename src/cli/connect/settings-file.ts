import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { replaceFile } from '../../client/node/replace-file.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'
import { ConnectError } from './connect-error.ts'

/** The original content of a settings file, so that it can be restored byte for byte. */
const recordSchema = z.strictObject({
  path: z.string(),
  /** Null where there was no file. */
  original_b64: z.string().nullable(),
  written_sha256: z.string(),
})

/** The settings file of one tool, and the record of its original content. */
export class SettingsFile {
  readonly path: string
  readonly #tool: string
  readonly #record: string

  /** @param recordsDir where records are kept; private to the user */
  constructor(tool: string, path: string, recordsDir: string) {
    this.path = path
    this.#tool = tool
    this.#record = join(recordsDir, `${tool}.json`)
  }

  /**
   * The content of the file; empty when the file does not exist.
   * @throws ConnectError when the file cannot be read
   */
  read(): string {
    if (!existsSync(this.path)) return ''
    try {
      return readFileSync(this.path, 'utf8')
    } catch (cause) {
      throw new ConnectError(`${this.path} cannot be read: ${messageOfThrown(cause)}`, { cause })
    }
  }

  get connected(): boolean {
    return existsSync(this.#record)
  }

  /**
   * Writes the record first, so that a failure at any later point cannot lose the original.
   * @throws ConnectError when the file cannot be written; then nothing is connected
   */
  change(after: string): void {
    const original = existsSync(this.path) ? readFileSync(this.path) : undefined
    const record = {
      path: this.path,
      original_b64: original?.toString('base64') ?? null,
      written_sha256: sha256(Buffer.from(after)),
    }
    writePrivate(this.#record, `${JSON.stringify(record)}\n`)
    try {
      writePrivate(this.path, after)
    } catch (cause) {
      rmSync(this.#record)
      throw new ConnectError(`${this.path} cannot be written, and was not changed`, { cause })
    }
  }

  /**
   * @throws ConnectError when the tool is not connected, when the file was changed since and `force` is false, or when
   *   the original cannot be read
   */
  restore(force: boolean): void {
    if (!this.connected) throw new ConnectError(`${this.#tool} is not connected`)
    const record = this.#readRecord()
    const current = existsSync(record.path) ? readFileSync(record.path) : Buffer.alloc(0)
    if (!force && sha256(current) !== record.written_sha256) {
      throw new ConnectError(
        `${record.path} was changed since: with --force it becomes what it was before all the same`,
      )
    }
    if (record.original_b64 === null) rmSync(record.path, { force: true })
    else writePrivate(record.path, Buffer.from(record.original_b64, 'base64'))
    rmSync(this.#record)
  }

  #readRecord(): z.output<typeof recordSchema> {
    try {
      return recordSchema.parse(JSON.parse(readFileSync(this.#record, 'utf8')))
    } catch (cause) {
      throw new ConnectError(
        `${this.#record} is damaged, so that ${this.#tool} is not restored; look into it before removing it`,
        { cause },
      )
    }
  }
}

/** Replaces the file, or creates it readable by its owner only, together with missing directories. */
function writePrivate(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  replaceFile(path, content, 0o600)
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
