import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import type { Bytes } from '../../protocol/bytes.ts'
import { readChain, type VekChain } from '../../verify/snp/chain.ts'
import { readListOf } from '../../verify/snp/revocation.ts'
import type { CertificateFiles } from './certificate-cache.ts'
import { CaptureError } from './capture-error.ts'
import type { Kds } from './kds.ts'

export interface RevocationDeps {
  readonly kds: Pick<Kds, 'revocationList'>
  /** A persistent store of lists. */
  readonly files: CertificateFiles
  /** Milliseconds. */
  readonly now: () => number
}

/**
 * AMD's revocation list for the root of a chain (VEK, ASK, ARK in PEM), in DER: the newest of the cached one, the
 * host's `offered` one and the key service's. Undefined where none of them is valid. It never rejects for a missing
 * list: callers that need one make the verifier require it.
 */
export type FindRevocationList = (chainPem: string, offered?: Bytes) => Promise<Bytes | undefined>

/** AMD's lists are valid for months, so a daily check is frequent enough and spares the service. */
const REFRESH_MS = 86_400_000
const RETRY_MS = 600_000

/**
 * Creates the finder of revocation lists. Whatever its source, a list is accepted only if the root of the chain signed
 * it; an older list never replaces a newer one.
 */
export function createRevocationLists({ kds, files, now }: RevocationDeps): FindRevocationList {
  const held = new Map<string, List>()
  const retryAt = new Map<string, number>()

  /**
   * Stores the list if it is valid and newer.
   * @returns whether it was stored
   */
  async function adopt(chain: VekChain, der: Bytes | undefined): Promise<boolean> {
    const list = der && (await readTrusted(chain, der))
    const before = held.get(nameOf(chain))
    if (list === undefined || (before && before.thisUpdate >= list.thisUpdate)) return false
    held.set(nameOf(chain), list)
    return true
  }

  async function fetchList(chain: VekChain): Promise<void> {
    const name = nameOf(chain)
    if (now() < (retryAt.get(name) ?? 0)) return
    // Set before the call, so that concurrent captures do not call the service as well.
    retryAt.set(name, now() + RETRY_MS)
    const der = await kds.revocationList(chain.product, chain.kind).catch(noneIfRefused)
    if (der === undefined || (await readTrusted(chain, der)) === undefined) return
    retryAt.set(name, now() + REFRESH_MS)
    if (await adopt(chain, der)) await files.write(name, der)
  }

  return async (chainPem, offered) => {
    const chain = await readChain(chainPem)
    if (typeof chain === 'string' || chain.simulated) return undefined
    const name = nameOf(chain)
    if (!held.has(name)) await adopt(chain, await files.read(name))
    await adopt(chain, offered)
    await fetchList(chain)
    const list = held.get(name)
    return list && list.thisUpdate <= now() && now() <= list.nextUpdate ? list.der : undefined
  }
}

interface List {
  readonly der: Bytes
  readonly thisUpdate: number
  readonly nextUpdate: number
}

/** The list, if the chain's root signed it. */
async function readTrusted(chain: VekChain, der: Bytes): Promise<List | undefined> {
  try {
    const list = await readListOf(chain, der)
    return typeof list === 'string' ? undefined : { ...list, der }
  } catch (error) {
    if (error instanceof MalformedEvidence) return undefined
    throw error
  }
}

function nameOf({ arkSpkiSha256, kind }: VekChain): string {
  return `${kind}-${arkSpkiSha256.slice(0, 16)}-revocations.der`
}

function noneIfRefused(error: unknown): undefined {
  if (error instanceof CaptureError) return undefined
  throw error
}
