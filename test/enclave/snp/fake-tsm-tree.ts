import { utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import type { TsmFiles } from '../../../src/enclave/snp/tsm-files.ts'

export interface FakeTsmOptions {
  readonly provider?: string
  readonly certificateTable?: Bytes
  /** The report for what was written; a blank one with REPORT_DATA unless given. */
  readonly report?: (reportData: Bytes) => Bytes | Promise<Bytes>
  /** How far one write moves the generation. */
  readonly generationsPerWrite?: number
  /** How many bytes a write takes. */
  readonly taken?: number
  readonly fail?: { readonly step: string; readonly code: string }
}

interface Directory {
  generation: number
  inblob: Bytes | undefined
}

/** A tree that behaves as the kernel's does: attributes appear with a directory and belong to it alone. */
export class FakeTsmTree implements TsmFiles {
  readonly log: string[] = []
  readonly directories = new Map<string, Directory>()
  readonly #options: FakeTsmOptions

  constructor(options: FakeTsmOptions = {}) {
    this.#options = options
  }

  async mkdir(path: string): Promise<void> {
    this.#enter(`mkdir ${path}`, 'mkdir')
    if (this.directories.has(path)) throw errno('EEXIST')
    this.directories.set(path, { generation: 0, inblob: undefined })
  }

  async rmdir(path: string): Promise<void> {
    this.#enter(`rmdir ${path}`, 'rmdir')
    this.directories.delete(path)
  }

  async write(path: string, bytes: Bytes): Promise<number> {
    const { directory, name } = this.#find(path)
    this.#enter(`write ${name} ${bytes.length}`, name)
    directory.inblob = bytes.slice()
    directory.generation += this.#options.generationsPerWrite ?? 1
    return this.#options.taken ?? bytes.length
  }

  async read(path: string): Promise<Bytes> {
    const { directory, name } = this.#find(path)
    this.#enter(`read ${name}`, name)
    if (name === 'provider') return utf8(this.#options.provider ?? 'sev_guest\n')
    if (name === 'generation') return utf8(`${directory.generation}\n`)
    if (directory.inblob?.length !== 64) throw errno('EINVAL')
    if (name === 'auxblob') return this.#options.certificateTable ?? new Uint8Array()
    return (this.#options.report ?? blankReport)(directory.inblob)
  }

  #find(path: string): { directory: Directory; name: string } {
    const cut = path.lastIndexOf('/')
    const directory = this.directories.get(path.slice(0, cut))
    if (directory === undefined) throw errno('ENOENT')
    return { directory, name: path.slice(cut + 1) }
  }

  #enter(entry: string, step: string): void {
    const { fail } = this.#options
    if (fail?.step === step) throw errno(fail.code)
    this.log.push(entry)
  }
}

function blankReport(reportData: Bytes): Bytes {
  const report = new Uint8Array(1184)
  report.set(reportData, 0x50)
  return report
}

function errno(code: string): Error {
  return Object.assign(new Error(`${code}: fake`), { code })
}
