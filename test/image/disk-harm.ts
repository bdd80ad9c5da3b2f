import { closeSync, openSync, truncateSync, writeSync } from 'node:fs'

const MIB = 1024 * 1024

/** Leaves less of the file of a data disk than its own structure says there is. */
export function cutShort(disk: string): void {
  truncateSync(disk, 100 * MIB)
}

/** Overwrites the first of its encrypted blocks, which lie behind 1 MiB of header and 2 MiB of journal. */
export function overwriteBlocks(disk: string): void {
  const file = openSync(disk, 'r+')
  writeSync(file, Buffer.alloc(17 * MIB, 0xa5), 0, 17 * MIB, 3 * MIB)
  closeSync(file)
}

/** QEMU's arguments for a data disk that is whole. */
export function diskOf(file: string): string[] {
  return attach(`file.driver=file,file.filename=${file}`)
}

/** QEMU's arguments for a data disk every read of which is an I/O error. */
export function failingDisk(file: string): string[] {
  const faults = 'file.inject-error.0.event=read_aio,file.inject-error.0.errno=5'
  return attach(`file.driver=blkdebug,file.image.driver=file,file.image.filename=${file},${faults}`)
}

function attach(file: string): string[] {
  return ['-drive', `if=virtio,driver=raw,rerror=report,werror=report,${file}`]
}
