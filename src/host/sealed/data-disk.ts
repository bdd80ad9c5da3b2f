import { createHash, randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { deriveKeys, HEAD_BYTES, isBlank, readHead, writeHead } from './data-disk-header.ts'
import { askForVolume, type VolumeAnswer } from './volume.ts'

/** Why the data disk with the ledger cannot be used, for the operator. A disk that is not blank is never formatted. */
export const DATA_DISK_FAULTS = {
  missing: 'data_disk_missing: the configuration asks for a data disk, and the host attached none',
  too_small: 'data_disk_too_small: it has less than 64 MiB',
  not_ours:
    'data_disk_not_ours: it holds something else; overwrite its first 2 MiB with zeros to have it formatted',
  not_blank:
    'data_disk_not_ours: it holds something behind a blank head; overwrite its first 2 MiB with zeros',
  other_key: 'data_disk_other_key: it was made with another DATA_DISK_KEY',
  damaged: 'data_disk_damaged: it was made here, and was changed or broken since',
  unreadable: 'data_disk_unreadable: the host answers reads of it with errors; it was not changed',
  blank:
    'data_disk_blank: it is blank, but the ledger of this router was at a position above zero: the disk is not the one it was',
  format_failed: 'data_disk_format_failed: the blank disk could not be written',
  already_open: 'data_disk_key_changed: the key of the data disk cannot change while it is open',
  malformed: 'DATA_DISK_KEY: must be 64 hex digits, such as from "openssl rand -hex 32"',
} as const satisfies Readonly<Record<string, string>>

export type DataDiskFault = keyof typeof DATA_DISK_FAULTS

const SECRET = /^[0-9a-f]{64}$/

export interface DataDiskPlaces {
  /** The block device, of which this program may read and write the first MiB. */
  readonly device: string
  /** The socket of PID 1. */
  readonly volume: string
}

/** The encrypted disk that holds the embedded ledger. It is opened once and stays open as long as the machine runs. */
export class DataDisk {
  readonly #places: DataDiskPlaces
  /** Digest of the secret it was opened with. */
  #openedWith: string | undefined

  constructor(places: DataDiskPlaces) {
    this.#places = places
  }

  /**
   * Opens the disk with the operator's secret. A blank disk is formatted, unless the ledger is known to have had
   * entries.
   * @param position the last ledger position that the operator saw
   * @returns why it cannot be opened, or undefined when the ledger's directory is on it
   */
  async open(secret: string, position: number | undefined): Promise<DataDiskFault | undefined> {
    if (!SECRET.test(secret)) return 'malformed'
    const digest = createHash('sha256').update(secret).digest('hex')
    if (this.#openedWith !== undefined) {
      return this.#openedWith === digest ? undefined : 'already_open'
    }
    const fault = await this.#openNow(Buffer.from(secret, 'hex'), position ?? 0)
    if (fault === undefined) this.#openedWith = digest
    return fault
  }

  async #openNow(secret: Buffer, position: number): Promise<DataDiskFault | undefined> {
    const head = await readStart(this.#places.device)
    if (typeof head === 'string') return head
    if (isBlank(head)) return position > 0 ? 'blank' : this.#format(secret)
    const keys = readHead(head, secret)
    if (typeof keys === 'string') return keys
    return faultOf(await askForVolume(this.#places.volume, 'open', keys.sectors))
  }

  /** Writes the head last, so that a disk whose formatting was interrupted is not taken for a finished one. */
  async #format(secret: Buffer): Promise<DataDiskFault | undefined> {
    const salt = randomBytes(32)
    const keys = deriveKeys(secret, salt)
    const fault = faultOf(await askForVolume(this.#places.volume, 'format', keys.sectors))
    if (fault !== undefined) return fault
    const written = writeStart(this.#places.device, writeHead(salt, keys))
    return written.then(
      () => undefined,
      () => 'format_failed' as const,
    )
  }
}

function faultOf(answer: VolumeAnswer): DataDiskFault | undefined {
  return answer === 'ok' ? undefined : answer
}

/** Reads the head of the disk, or says why that failed. */
async function readStart(path: string): Promise<Buffer | 'missing' | 'unreadable'> {
  try {
    const device = await open(path, 'r')
    try {
      const head = Buffer.alloc(HEAD_BYTES)
      const { bytesRead } = await device.read(head, 0, HEAD_BYTES, 0)
      return head.subarray(0, bytesRead)
    } finally {
      await device.close()
    }
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    return missing ? 'missing' : 'unreadable'
  }
}

async function writeStart(path: string, head: Buffer): Promise<void> {
  const device = await open(path, 'r+')
  try {
    await device.write(head, 0, HEAD_BYTES, 0)
    await device.sync()
  } finally {
    await device.close()
  }
}
