import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeLocalRelease } from '../../src/enclave/release/local-release.ts'
import { makeSigningKey, type SigningKey } from '../../src/enclave/release/signing-key.ts'
import { simulatedMeasurement } from '../../src/enclave/snp/simulated-source.ts'
import { writePrivateKey } from '../../src/cli/release/files.ts'
import { toHex } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { makeOperatorBundles } from './operator-bundles.ts'
import { ADMIN_TOKEN } from './serve.ts'
import { TRUST_BUNDLE_URL } from './trust-bundle-url.ts'

/** What an operator has who unseals routers of one release: keys, a configuration and secrets, in files. */
export interface SealedWorld {
  readonly directory: string
  readonly config: unknown
  readonly configurationSha256: string
  readonly operator: SigningKey
  readonly rootJwk: unknown
  /** The path of a file by its name. */
  at(name: string): string
  remove(): void
}

export const SECRETS = { ADMIN_TOKEN, NOVA_API_KEY: 'first-key' }

export async function makeSealedWorld(baseUrl: string): Promise<SealedWorld> {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-sealed-'))
  const at = (name: string) => join(directory, name)
  const operator = await makeSigningKey({ extractable: true })
  const release = await makeLocalRelease({
    build: { version: '1.0.0', sourceSha256: '0'.repeat(64), bundleSha256: '0'.repeat(64) },
    measure: async (tag) => toHex(await simulatedMeasurement(tag)),
    now: new Date(),
  })
  const { rootJwk, ...bundles } = await makeOperatorBundles(release.bundleJws)
  const files = {
    'trust.json': bundles.published,
    'other-measurement.json': bundles.otherMeasurement,
    'higher-floor.json': bundles.higherFloor,
  }
  writeFileSync(at('root.jwk.json'), JSON.stringify(rootJwk))
  for (const [name, jws] of Object.entries(files)) {
    writeFileSync(at(name), JSON.stringify({ trust_bundle_jws: jws }))
  }
  writeFileSync(at('manifest.jws'), release.manifestJws)
  writeFileSync(at('secrets.json'), JSON.stringify(SECRETS), { mode: 0o600 })
  await writePrivateKey(at('operator.private.jwk.json'), operator)
  await writePrivateKey(
    at('stranger.private.jwk.json'),
    await makeSigningKey({ extractable: true }),
  )
  const config = {
    service: {
      name: 'sealed-router',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      allow_unattested: ['nova'],
      unseal: { operator_key: operator.publicJwk },
      release: {
        root_key: rootJwk,
        bundle: at('trust.json'),
        manifest: at('manifest.jws'),
      },
    },
    providers: {
      nova: { base_url: baseUrl, api_key_env: 'NOVA_API_KEY', attestation: { adapter: 'none' } },
    },
    routes: [
      {
        model_key: 'quick',
        provider: 'nova',
        upstream_model: 'paced-0',
        type: 'chat',
        pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
      },
    ],
  }
  const text = JSON.stringify(config)
  writeFileSync(at('router.json'), text)
  return {
    directory,
    config,
    configurationSha256: await sha256Hex(text),
    operator,
    rootJwk,
    at,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
