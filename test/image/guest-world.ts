import { copyFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandLine } from '../../src/cli/image/command-line.ts'
import { readImage } from '../../src/cli/image/build-image.ts'
import { writePrivateKey } from '../../src/cli/release/files.ts'
import { CHIP_FILE_VARIABLE } from '../../src/enclave/open-machine.ts'
import { makeLocalRelease } from '../../src/enclave/release/local-release.ts'
import { makeSigningKey, type SigningKey } from '../../src/enclave/release/signing-key.ts'
import { simulatedMeasurement } from '../../src/enclave/snp/simulated-source.ts'
import { openStandinIdentity } from '../../src/standin/attested-identity.ts'
import { toHex } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { makeOperatorBundles } from '../support/operator-bundles.ts'
import { IMAGE_DIR, type GuestPlan } from './guest.ts'

export const ADMIN_TOKEN = 'admin-token-of-the-image-test'

/** Of the stand-in provider in the guest; the router calls the second, whose evidence it verifies. */
const STANDIN_PORTS = { port: 9100, tls_port: 9101 } as const

const DATA_DISK_BYTES = 256 * 1024 * 1024

/** What an operator and a host have between them: keys, configuration, secrets, disks. */
export interface GuestWorld {
  readonly operator: SigningKey
  readonly configurationSha256: string
  readonly secrets: Readonly<Record<string, string>>
  at(name: string): string
  /** The command line of this image for a configuration. */
  commandLineFor(configuration: Uint8Array): string
  /** What the host starts the guest from. */
  plan(): GuestPlan
  remove(): void
}

export async function makeGuestWorld(): Promise<GuestWorld> {
  const directory = mkdtempSync(join(tmpdir(), 'cmr-guest-'))
  const at = (name: string) => join(directory, name)
  const write = (name: string, value: unknown) =>
    writeFileSync(at(name), typeof value === 'string' ? value : JSON.stringify(value), {
      mode: 0o600,
    })
  const chipFile = process.env[CHIP_FILE_VARIABLE] ?? ''
  const operator = await makeSigningKey({ extractable: true })
  const release = await makeLocalRelease({
    build: { version: '1.0.0', sourceSha256: '0'.repeat(64), bundleSha256: '0'.repeat(64) },
    measure: async (tag) => toHex(await simulatedMeasurement(tag)),
    now: new Date(),
  })
  const { rootJwk, ...bundles } = await makeOperatorBundles(release.bundleJws)
  const standin = await openStandinIdentity(undefined, new Date())
  const secrets = {
    ADMIN_TOKEN,
    PROVIDER_KEY: 'key-of-the-provider',
    DATA_DISK_KEY: 'ab'.repeat(32),
  }
  const config = JSON.stringify({
    service: {
      name: 'guest',
      trust_bundle_url: 'https://router.example/.well-known/trust.json',
      allow_simulated: true,
      data_disk: true,
      unseal: { operator_key: operator.publicJwk },
      release: { root_key: rootJwk, bundle: 'bundle', manifest: 'manifest' },
    },
    providers: {
      standin: {
        base_url: `https://127.0.0.1:${STANDIN_PORTS.tls_port}/standin/v1`,
        api_key_env: 'PROVIDER_KEY',
        attestation: {
          adapter: 'envelope',
          root_key: standin.root.publicJwk,
          environments: ['local'],
        },
      },
    },
    routes: [
      {
        model_key: 'glm-5',
        provider: 'standin',
        upstream_model: 'zai-org/GLM-5',
        type: 'chat',
        pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
      },
    ],
  })
  write('router.json', config)
  write('secrets.json', secrets)
  write('other-disk-key.json', { ...secrets, DATA_DISK_KEY: 'cd'.repeat(32) })
  write('bundle', { trust_bundle_jws: bundles.published })
  write('manifest', release.manifestJws)
  write('root.jwk.json', rootJwk)
  write('standin', { ...STANDIN_PORTS, identity: JSON.parse(standin.kept) })
  write('provider-root.jwk.json', standin.root.publicJwk)
  write('other-measurement.json', { trust_bundle_jws: bundles.otherMeasurement })
  write('data.img', '')
  truncateSync(at('data.img'), DATA_DISK_BYTES)
  copyFileSync(chipFile, at('chip.json'))
  await writePrivateKey(at('operator.private.jwk.json'), operator)
  await writePrivateKey(
    at('stranger.private.jwk.json'),
    await makeSigningKey({ extractable: true }),
  )
  const { root_hash: rootHash, root_blocks: rootBlocks } = readImage(IMAGE_DIR)
  const commandLineFor = (configuration: Uint8Array) =>
    commandLine({ rootHash, rootBlocks }, configuration)
  let guests = 0
  return {
    operator,
    configurationSha256: await sha256Hex(config),
    secrets,
    at,
    commandLineFor,
    plan: () => ({
      commandLine: commandLineFor(Buffer.from(config)),
      rootDisk: join(IMAGE_DIR, 'root.img'),
      dataDisk: at('data.img'),
      items: {
        config: at('router.json'),
        bundle: at('bundle'),
        manifest: at('manifest'),
        'simulated-chip': at('chip.json'),
        standin: at('standin'),
      },
      monitor: at(`monitor-${(guests += 1)}`),
    }),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
