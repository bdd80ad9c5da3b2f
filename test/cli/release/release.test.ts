import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { parseCompactJws } from '../../../src/protocol/compact-jws.ts'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { publishedTrustBundleSchema } from '../../../src/protocol/trust-bundle.ts'
import { checkManifest } from '../../../src/verify/manifest.ts'
import { verdict } from '../../../src/verify/check.ts'
import { verifyTrustBundle } from '../../../src/verify/trust-bundle.ts'
import { startDaemonProcess } from '../../enclave/daemon-process.ts'
import { outputOf } from '../../support/run-program.ts'
import { TRUST_BUNDLE_URL } from '../../support/trust-bundle-url.ts'

const MEASUREMENT = '5a'.repeat(48)
const DAY_MS = 86_400_000

let directory: string
const at = (name: string) => join(directory, name)

/** Runs the tool in the directory of this test, its words given in any pieces; answers what it printed. */
async function release(...args: readonly string[]): Promise<Record<string, unknown>> {
  const words = args.flatMap((part) => part.split(' '))
  const printed: unknown = JSON.parse(await outputOf(['release', ...words], { cwd: directory }))
  return { ...(typeof printed === 'object' ? printed : {}) }
}

/** What the tool says when it refuses, as every command does; its exit status is 1. */
async function refusal(...args: readonly string[]): Promise<string> {
  const failed: unknown = await release(...args).catch((error: unknown) => error)
  expect(failed).toMatchObject({ code: 1 })
  const said = failed instanceof Error && 'stderr' in failed ? String(failed.stderr) : ''
  expect(said).toMatch(/^error: /)
  return said.slice('error: '.length).trim()
}

async function openBundle(file: string, root = 'root.jwk.json') {
  const published = publishedTrustBundleSchema.parse(JSON.parse(await readFile(at(file), 'utf8')))
  const rootJwk: unknown = JSON.parse(await readFile(at(root), 'utf8'))
  const options = { now: Date.now(), environments: ['staging'] }
  const { bundle, checks } = await verifyTrustBundle(published.trust_bundle_jws, rootJwk, options)
  if (bundle === undefined) throw new Error(JSON.stringify(checks))
  return bundle
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cmr-release-'))
  const template = {
    environment: 'staging',
    tcb_floor: { genoa: { bootloader: 1, tee: 0, snp: 1, microcode: 1 } },
  }
  await Promise.all([
    writeFile(at('template.json'), JSON.stringify(template)),
    writeFile(at('worker.js'), 'the worker'),
    writeFile(at('image.raw'), 'the image'),
    writeFile(at('verifier.html'), 'the page'),
    writeFile(at('meta.json'), '{"builder":{"id":"ci"}}'),
  ])
  await release('keygen', '--private', 'root.private.jwk.json', '--public', 'root.jwk.json')
  await release('keygen', '--private', 'mk.private.jwk.json', '--public', 'mk.jwk.json')
}, 30_000)

const SIGN_MANIFEST: readonly string[] = [
  'sign-manifest --key mk.private.jwk.json --version 1.2.3',
  '--binary worker.js --image image.raw --verifier verifier.html --metadata meta.json',
]
const SIGN_BUNDLE: readonly string[] = [
  'sign-bundle --root-key root.private.jwk.json --template template.json',
  '--manifest-key mk.jwk.json --manifest manifest.jws',
]

async function document(path: string): Promise<string> {
  return (await readFile(path, 'utf8')).trim()
}

async function untilServed(served: () => Promise<{ text: string }>, path: string): Promise<void> {
  await vi.waitFor(async () => expect((await served()).text).toBe(await document(path)), 10_000)
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

describe('keygen', () => {
  it('writes a private key for the owner alone, and a public one without it', async () => {
    expect((await stat(at('root.private.jwk.json'))).mode & 0o777).toBe(0o600)
    const jwk: unknown = JSON.parse(await readFile(at('root.jwk.json'), 'utf8'))
    expect(jwk).toMatchObject({ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig' })
    expect(jwk).not.toHaveProperty('d')
  })

  it('never writes over a key', async () => {
    const message = await refusal('keygen', '--private', 'root.private.jwk.json', '--public', 'x')
    expect(message).toBe('root.private.jwk.json cannot be written: EEXIST')
    expect(existsSync(at('x'))).toBe(false)
  })

  it.each([
    ['is there already', 'root.jwk.json', 'EEXIST'],
    ['has no folder', 'missing/new.jwk.json', 'ENOENT'],
    ['is to be the private one', 'new.private.jwk.json', 'EEXIST'],
  ])('leaves no private key behind where the public file %s', async (_, file, code) => {
    const before = await readFile(at('root.jwk.json'), 'utf8')
    const message = await refusal('keygen', '--private', 'new.private.jwk.json', '--public', file)
    expect(message).toBe(`${file} cannot be written: ${code}`)
    expect(existsSync(at('new.private.jwk.json'))).toBe(false)
    expect(await readFile(at('root.jwk.json'), 'utf8')).toBe(before)
  })

  it('leaves no empty file behind where the disk takes none of the key', async () => {
    const main = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))
    const words = ['release', 'keygen', '--private', at('full.private'), '--public', at('full')]
    // No file may have a byte, which a write finds out only once there is one.
    const limited = ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath, main, ...words]
    const keygen = promisify(execFile)('/bin/sh', limited)
    await expect(keygen).rejects.toMatchObject({
      code: 1,
      stderr: `error: ${at('full.private')} cannot be written: EFBIG\n`,
    })
    expect([at('full.private'), at('full')].map(existsSync)).toEqual([false, false])
  })
})

describe('a release from nothing', () => {
  it('has a manifest of the digests of its files, and a bundle that allows it', async () => {
    const { workload_identity_tag: tag } = await release(...SIGN_MANIFEST, '--out', 'manifest.jws')
    const manifestJws = await readFile(at('manifest.jws'), 'utf8')
    expect(tag).toBe(sha256(manifestJws))
    const { payload } = parseCompactJws(manifestJws, 'manifest')
    expect(JSON.parse(fromUtf8(payload))).toEqual({
      schema: 'workload-identity/v1',
      workload: 'router',
      version: '1.2.3',
      image_digest: `sha256:${sha256('the image')}`,
      binary_digest: `sha256:${sha256('the worker')}`,
      verifier_digest: `sha256:${sha256('the page')}`,
      build_metadata: { builder: { id: 'ci' } },
    })

    await release(...SIGN_BUNDLE, '--allow', MEASUREMENT, '--simulated', '--out', 'trust.json')
    const bundle = await openBundle('trust.json')
    expect(bundle).toMatchObject({ version: 1, allowed_identity_tags: [tag] })
    expect(bundle.allowed_measurements).toHaveLength(2)
    expect(bundle.allowed_measurements[0]).toEqual({
      measurement: MEASUREMENT,
      workload: 'router',
      workload_identity_tag: tag,
    })
    expect(Date.parse(bundle.expires_at) - Date.parse(bundle.issued_at)).toBe(30 * DAY_MS)
  }, 20_000)

  it('is what a daemon proves itself with, and never an older one after a newer one', async () => {
    const service = {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      release: {
        root_key: at('root.jwk.json'),
        bundle: at('trust.json'),
        manifest: at('manifest.jws'),
      },
    }
    const daemon = await startDaemonProcess(
      { service, providers: {}, routes: [] },
      { mode: 'production' },
    )
    const { ready } = await daemon.next('ready')
    expect(ready.release).toBeNull()
    expect((await daemon.call(ready, '/v1/trust')).text).toBe(await document(at('trust.json')))
    await release(...SIGN_BUNDLE, '--simulated --bundle-version 5 --out newer.json')
    await copyFile(at('trust.json'), at('before.json'))
    await copyFile(at('newer.json'), at('trust.json'))
    daemon.child.kill('SIGHUP')
    await untilServed(() => daemon.call(ready, '/v1/trust'), at('newer.json'))
    await copyFile(at('before.json'), at('trust.json'))
    daemon.child.kill('SIGHUP')
    expect((await daemon.next('reload_refused')).reason).toBe(
      'this instance cannot prove its release:\n' +
        '  trust_bundle_version: version 1 is older than 5, seen before',
    )
    expect((await daemon.call(ready, '/v1/trust')).text).toBe(await document(at('newer.json')))
    await daemon.stop()
  }, 60_000)

  it('is refused by a daemon in production mode that it does not allow', async () => {
    const only = [...SIGN_BUNDLE, '--allow', MEASUREMENT, '--out', 'real.json']
    await release(...only)
    const service = {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      release: {
        root_key: at('root.jwk.json'),
        bundle: at('real.json'),
        manifest: at('manifest.jws'),
      },
    }
    const daemon = await startDaemonProcess(
      { service, providers: {}, routes: [] },
      { mode: 'production' },
    )
    expect((await daemon.next('refused')).reason).toMatch(
      /^this instance cannot prove its release:\n {2}measurement_allowed: measurement [0-9a-f]{96} is not in the bundle$/,
    )
    await daemon.stop()
  }, 60_000)
})

describe('sign-bundle', () => {
  it('follows the bundle before', async () => {
    const next = [...SIGN_BUNDLE, '--previous', 'trust.json', '--days', '7', '--out', 'next.json']
    expect(await release(...next)).toMatchObject({ version: 2 })
    expect(await openBundle('next.json')).toMatchObject({ version: 2 })
  })

  it.each([
    [
      'a version that is not higher',
      [...SIGN_BUNDLE, '--previous', 'trust.json', '--bundle-version', '1'],
      'trust_bundle_version: another bundle of version 1 was seen before',
    ],
    [
      'a measurement without a release',
      [...SIGN_BUNDLE.slice(0, 1), '--allow', MEASUREMENT],
      'a measurement is allowed for one release: name its --manifest',
    ],
    [
      'a manifest that another key signed',
      [...SIGN_BUNDLE.slice(0, 1), '--manifest-key', 'root.jwk.json', '--manifest', 'manifest.jws'],
      /^manifest_header: .*manifest_signature: the signature does not verify$/,
    ],
    [
      'a template that lacks something',
      ['sign-bundle --root-key root.private.jwk.json --template meta.json'],
      /^malformed trust bundle: environment: /,
    ],
    [
      'a key file that is none',
      ['sign-bundle', '--root-key', 'worker.js', '--template', 'template.json'],
      'worker.js cannot be used: others may read or change this private key; chmod 600 it',
    ],
  ])('refuses %s', async (_what, args, message) => {
    expect(await refusal(...args, '--out', 'refused.json')).toMatch(message)
    await expect(stat(at('refused.json'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('replaces no bundle by another of the same version, which clients that saw the first one refuse', async () => {
    await release(...SIGN_BUNDLE, '--out', 'once.json')
    const before = await readFile(at('once.json'), 'utf8')
    expect(await refusal(...SIGN_BUNDLE, '--out', 'once.json')).toBe(
      'once.json is version 1 of the bundles of this root: sign the next one with --previous once.json',
    )
    expect(await readFile(at('once.json'), 'utf8')).toBe(before)
    const next = [...SIGN_BUNDLE, '--previous', 'once.json', '--out', 'once.json']
    expect(await release(...next)).toMatchObject({ version: 2 })
    await release('keygen --private other.private.jwk.json --public other.jwk.json')
    const other = SIGN_BUNDLE.map((part) => part.replace('root.private', 'other.private'))
    expect(await release(...other, '--out', 'once.json')).toMatchObject({ version: 1 })
  })

  it.each(['mk.private.jwk.json', 'log.key'])(
    'never replaces a private key with a public document: %s',
    async (file) => {
      if (file === 'log.key') await release('log keygen --name a.example --private log.key')
      const before = await readFile(at(file), 'utf8')
      expect(await refusal(...SIGN_MANIFEST, '--out', file)).toBe(
        `${file} holds a private key, and is not replaced`,
      )
      expect(await readFile(at(file), 'utf8')).toBe(before)
    },
  )

  it('refuses a private key that others may read', async () => {
    await chmod(at('mk.private.jwk.json'), 0o644)
    expect(await refusal(...SIGN_MANIFEST, '--out', 'refused.jws')).toBe(
      'mk.private.jwk.json cannot be used: others may read or change this private key; chmod 600 it',
    )
    await chmod(at('mk.private.jwk.json'), 0o600)
  })
})

describe('rotate', () => {
  it('replaces the manifest key, the tag and the simulated measurement, and withdraws the old', async () => {
    const { workload_identity_tag: tag } = await release(
      'rotate manifest-key --root-key root.private.jwk.json --revoke',
      '--bundle trust.json --manifest manifest.jws',
      '--private mk2.private.jwk.json --public mk2.jwk.json',
      '--out-manifest manifest2.jws --out-bundle trust2.json',
    )
    const [before, bundle] = [await openBundle('trust.json'), await openBundle('trust2.json')]
    expect(bundle).toMatchObject({
      version: 2,
      allowed_identity_tags: [tag],
      revoked: { identity_tags: before.allowed_identity_tags },
    })
    expect(bundle.revoked.keys).toHaveLength(1)
    const [real, simulated] = bundle.allowed_measurements
    expect(real).toMatchObject({ measurement: MEASUREMENT, workload_identity_tag: tag })
    expect(simulated?.measurement).not.toBe(before.allowed_measurements[1]?.measurement)
    const rootJwk = JSON.parse(await readFile(at('root.jwk.json'), 'utf8'))
    const manifest = await readFile(at('manifest2.jws'), 'utf8')
    const trust = { bundle, rootJwk }
    const { checks } = await checkManifest(manifest, 'router', { trust, now: Date.now() })
    expect(verdict(checks).ok).toBe(true)
  })

  it('leaves no new key behind where its public file is there already', async () => {
    const message = await refusal(
      'rotate manifest-key --root-key root.private.jwk.json',
      '--bundle trust.json --manifest manifest.jws',
      '--private none.private.jwk.json --public mk.jwk.json',
      '--out-manifest none.jws --out-bundle none.json',
    )
    expect(message).toBe('mk.jwk.json cannot be written: EEXIST')
    const made = ['none.private.jwk.json', 'none.jws', 'none.json']
    expect(made.filter((name) => existsSync(at(name)))).toEqual([])
  })

  it.each([
    ['manifest', 'missing/half.jws', 'half.json'],
    ['bundle', 'half.jws', 'missing/half.json'],
  ])('leaves nothing behind where the %s cannot be written', async (name, manifest, bundle) => {
    const message = await refusal(
      'rotate manifest-key --root-key root.private.jwk.json',
      '--bundle trust.json --manifest manifest.jws',
      '--private half.private.jwk.json --public half.jwk.json',
      `--out-manifest ${manifest} --out-bundle ${bundle}`,
    )
    const file = name === 'manifest' ? manifest : bundle
    expect(message).toBe(`${file} cannot be written: ENOENT`)
    const made = await readdir(directory)
    expect(made.filter((entry) => entry.includes('half'))).toEqual([])
  })

  it('leaves the manifest in use as it is where the bundle cannot be written', async () => {
    await copyFile(at('manifest.jws'), at('used.jws'))
    await refusal(
      'rotate manifest-key --root-key root.private.jwk.json',
      '--bundle trust.json --manifest used.jws',
      '--private half.private.jwk.json --public half.jwk.json',
      '--out-manifest used.jws --out-bundle missing/half.json',
    )
    expect(await document(at('used.jws'))).toBe(await document(at('manifest.jws')))
  })

  it('says since when the old key and tag are revoked, only where they are', async () => {
    const parts = [
      'rotate manifest-key --root-key root.private.jwk.json --revoked-since 2026-11-01T00:00:00Z',
      '--bundle trust.json --manifest manifest.jws',
      '--private mk3.private.jwk.json --public mk3.jwk.json',
      '--out-manifest manifest3.jws --out-bundle trust3.json',
    ] as const
    expect(await refusal(...parts)).toBe('--revoked-since needs --revoke')
    await release(...parts, '--revoke')
    const { revoked } = await openBundle('trust3.json')
    const since = '2026-11-01T00:00:00.000Z'
    expect(revoked.identity_tags).toEqual([{ value: expect.any(String), since }])
    expect(revoked.keys).toEqual([{ value: expect.any(String), since }])
  })

  it('moves a bundle to a new root', async () => {
    await release('keygen', '--private', 'root2.private.jwk.json', '--public', 'root2.jwk.json')
    await release(
      'rotate root --root-key root.jwk.json --bundle trust.json',
      '--new-root-key root2.private.jwk.json --out moved.json',
    )
    const [before, moved] = [
      await openBundle('trust.json'),
      await openBundle('moved.json', 'root2.jwk.json'),
    ]
    expect(moved.version).toBe(2)
    expect(moved.allowed_measurements).toEqual(before.allowed_measurements)
  })

  it('refuses a bundle of another root', async () => {
    const message = await refusal(
      'rotate root --root-key mk.jwk.json --bundle trust.json',
      '--new-root-key root.private.jwk.json --out refused.json',
    )
    expect(message).toContain('trust_bundle_signature: the signature does not verify')
  })
})
