import { afterEach, describe, expect, it } from 'vitest'
import type { OpenedAdapter } from '../../../src/enclave/adapters/table.ts'
import {
  afterReal,
  isolateAdapters,
  THREAD_LIMITS,
} from '../../../src/enclave/isolated/isolated-adapter.ts'
import { makeSigningKey, type PublicSigningJwk } from '../../../src/enclave/release/signing-key.ts'
import { releaseRootPolicy } from '../../../src/verify/providers/envelope.ts'
import { newKdsWaits } from '../../../src/enclave/snp/kds.ts'

const OLDER = 'the trust bundle is not accepted (trust_bundle_version)'

const open: OpenedAdapter[] = []
afterEach(() => open.splice(0).forEach((one) => one.close?.()))

/** Opens providers that publish a bundle of a version, all in one daemon. */
function daemon() {
  const openAdapter = isolateAdapters({
    program: new URL('../../support/bundle-adapter-thread.ts', import.meta.url),
    data: { stateDir: '/nonexistent', kdsWaits: newKdsWaits(), ownSimulated: 'refuse' },
    limits: THREAD_LIMITS,
    after: afterReal,
  })
  return (root: PublicSigningJwk, version: number) => {
    const baseUrl = `https://${version}.test`
    const subject = {
      baseUrl,
      apiKey: String(version),
      mode: 'production',
      allowSimulated: false,
    } as const
    const adapter = openAdapter(releaseRootPolicy({ ...root }, {}), subject)
    if (adapter === undefined) throw new Error('no adapter')
    open.push(adapter)
    return adapter
  }
}

const makeRoot = async () => (await makeSigningKey({ extractable: false })).publicJwk

describe(
  'the newest bundle that the daemon has accepted of a release root',
  { timeout: 60_000 },
  () => {
    it('is remembered for every provider of that root, and when one is opened anew', async () => {
      const provider = daemon()
      const root = await makeRoot()
      await provider(root, 6).obtain()
      await expect(provider(root, 5).obtain()).rejects.toThrow(OLDER)
      await provider(root, 6).obtain()
      await provider(root, 7).obtain()
      await expect(provider(root, 6).obtain()).rejects.toThrow(OLDER)
    })

    it('says nothing about those of another root', async () => {
      const provider = daemon()
      await provider(await makeRoot(), 6).obtain()
      await expect(provider(await makeRoot(), 5).obtain()).resolves.toMatchObject({
        verified: true,
      })
    })

    it('is not replaced by an older one whose verification had begun before', async () => {
      const provider = daemon()
      const root = await makeRoot()
      const [older, newer] = [provider(root, 5), provider(root, 6)]
      const outcomes = await Promise.allSettled([newer.obtain(), older.obtain()])
      expect(outcomes.map(({ status }) => status)).toContain('fulfilled')
      await expect(provider(root, 5).obtain()).rejects.toThrow(OLDER)
    })
  },
)
