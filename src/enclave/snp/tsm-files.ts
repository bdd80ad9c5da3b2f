import { mkdir, open, rmdir } from 'node:fs/promises'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'

/** The file operations that configfs-tsm needs. All of them may block in the kernel for a minute. */
export interface TsmFiles {
  mkdir(path: string): Promise<void>
  rmdir(path: string): Promise<void>
  /** Writes in one call and returns how many bytes were taken. */
  write(path: string, bytes: Bytes): Promise<number>
  /** Reads to the end; the size of attributes is not known beforehand. */
  read(path: string): Promise<Bytes>
}

/** The kernel's own limit for a blob is 32 KiB. */
const MAX_BLOB_BYTES = 65_536

/** The real file system, asynchronous. */
export const nodeTsmFiles: TsmFiles = {
  async mkdir(path) {
    await mkdir(path)
  },
  rmdir: (path) => rmdir(path),
  async write(path, bytes) {
    const file = await open(path, 'w')
    try {
      return (await file.write(bytes, 0, bytes.length, null)).bytesWritten
    } finally {
      await file.close()
    }
  },
  async read(path) {
    const buffer = new Uint8Array(MAX_BLOB_BYTES)
    const file = await open(path, 'r')
    try {
      let length = 0
      while (length < buffer.length) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, null)
        if (bytesRead === 0) break
        length += bytesRead
      }
      return copyBytes(buffer.subarray(0, length))
    } finally {
      await file.close()
    }
  },
}
