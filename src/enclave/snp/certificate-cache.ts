import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { copyBytes, toHex, type Bytes } from '../../protocol/bytes.ts'
import type { ChipKey, Kds } from './kds.ts'

/** A persistent store of fetched certificates. They are public, and verified at every use. */
export interface CertificateFiles {
  read(name: string): Promise<Bytes | undefined>
  write(name: string, bytes: Bytes): Promise<void>
}

/** A directory of files. A cache that cannot be read or written is treated as empty. */
export function certificateDirectory(directory: string): CertificateFiles {
  return {
    async read(name) {
      try {
        return copyBytes(await readFile(join(directory, name)))
      } catch {
        return undefined
      }
    },
    async write(name, bytes) {
      try {
        await mkdir(directory, { recursive: true })
        await replace(join(directory, name), bytes)
      } catch {
        // Not an error: a certificate that cannot be stored is fetched again next time.
      }
    },
  }
}

/** Replaces a file by a draft in a folder of its own, because other processes may replace it at the same time. */
async function replace(path: string, bytes: Bytes): Promise<void> {
  const folder = await mkdtemp(`${path}.`)
  try {
    await writeFile(join(folder, 'draft'), bytes)
    await rename(join(folder, 'draft'), path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Cached results of the key service, used before calling it. */
export interface CertificateCache {
  readonly kept: {
    readonly [K in keyof KeyService]: (
      ...key: Parameters<KeyService[K]>
    ) => Promise<Bytes | undefined>
  }
  /** The key service; its results are stored in the cache. */
  readonly fetched: KeyService
}

/** The documents that never change once issued; revocation lists do. */
type KeyService = Pick<Kds, 'vcek' | 'authorities'>

export function createCertificateCache(kds: KeyService, files: CertificateFiles): CertificateCache {
  const keep = async (name: string, bytes: Bytes): Promise<Bytes> => {
    await files.write(name, bytes)
    return bytes
  }
  return {
    kept: {
      vcek: (chip) => files.read(vcekName(chip)),
      authorities: (product, kind) => files.read(authoritiesName(product, kind)),
    },
    fetched: {
      vcek: async (chip) => keep(vcekName(chip), await kds.vcek(chip)),
      authorities: async (product, kind) =>
        keep(authoritiesName(product, kind), await kds.authorities(product, kind)),
    },
  }
}

/** A VCEK is determined by product, chip and TCB, and never changes. */
function vcekName({ product, chipId, tcb }: ChipKey): string {
  const { fmc = 0, bootloader = 0, tee = 0, snp = 0, microcode = 0 } = tcb
  const levels = toHex(Uint8Array.of(fmc, bootloader, tee, snp, microcode))
  return `vcek-${product}-${toHex(chipId)}-${levels}.der`
}

function authoritiesName(product: string, kind: string): string {
  return `${kind}-${product}-authorities.pem`
}
