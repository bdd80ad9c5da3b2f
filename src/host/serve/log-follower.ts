import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'

const CHUNK_BYTES = 64 * 1024

/** A longer line is not a log line of this program. */
const MAX_LINE_CHARS = 64 * 1024

/** Reads the lines that were added to a log file since the last call of `look`. */
export class LogFollower {
  readonly #path: string
  readonly #line: (text: string) => void
  readonly #chunk = Buffer.alloc(CHUNK_BYTES)
  #decoder = new StringDecoder('utf8')
  #inode: number | undefined
  #offset = 0
  #rest = ''

  constructor(path: string, line: (text: string) => void) {
    this.#path = path
    this.#line = line
  }

  /**
   * Reads on. A file that does not exist yet has no lines; one that was replaced or emptied is read from its beginning.
   */
  look(): void {
    let file: number
    try {
      file = openSync(this.#path, 'r')
    } catch {
      return
    }
    try {
      this.#read(file)
    } finally {
      closeSync(file)
    }
  }

  #read(file: number): void {
    const { ino, size } = fstatSync(file)
    if (ino !== this.#inode || size < this.#offset) {
      this.#inode = ino
      this.#offset = 0
      this.#rest = ''
      this.#decoder = new StringDecoder('utf8')
    }
    for (;;) {
      const count = readSync(file, this.#chunk, 0, CHUNK_BYTES, this.#offset)
      if (count === 0) return
      this.#offset += count
      const lines = (this.#rest + this.#decoder.write(this.#chunk.subarray(0, count))).split('\n')
      this.#rest = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS)
      for (const line of lines) this.#line(line)
    }
  }
}
