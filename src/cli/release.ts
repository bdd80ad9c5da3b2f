import { stat } from 'node:fs/promises'
import { Command } from 'commander'
import { WORKLOAD } from '../protocol/envelope.ts'
import { makeSigningKey, type SigningKey } from '../enclave/release/signing-key.ts'
import { simulatedMeasurement } from '../enclave/snp/simulated-source.ts'
import { toHex } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { issueBundle, openBundle, readTemplate } from './release/bundle.ts'
import { writeDocument } from './release/documents.ts'
import {
  hashFile,
  readJson,
  readPrivateKey,
  readPublicKey,
  readText,
  writeKeyPair,
} from './release/files.ts'
import { readMetadata, makeManifest } from './release/manifest.ts'
import { addLogCommands } from './release/log-commands.ts'
import { addMeasureCommand } from './release/measure-command.ts'
import { ReleaseError } from './release/release-error.ts'
import { addPageCommand } from './release/page-command.ts'
import { addRotateCommands } from './release/rotate-commands.ts'
import { TransparencyError } from '../verify/transparency/transparency-error.ts'
import { explainer } from './failure.ts'
import type { Subcommand } from './subcommand.ts'
import { measurement, print, wholeNumber } from './release/terminal.ts'

/**
 * `release`: keys, manifests and trust bundles of a release. Nothing here uses the network: run it on the machine that
 * holds the release root, and copy only public files from it.
 */
const program = new Command('release')
  .description('Keys, manifests and trust bundles of a release. Offline.')
  .showHelpAfterError()
  .addHelpText(
    'after',
    `
A release from nothing, in a checkout with the image ('npm run image') and the compiled program ('npm run prepack'):
  keygen --private root.private.jwk.json --public root.jwk.json
  keygen --private manifest.private.jwk.json --public manifest.jwk.json
  sign-manifest --key manifest.private.jwk.json --version 1.0.0 --binary lib/worker.js \\
      --image dist/image/image.json --verifier lib/verifier.html --out manifest.jws
  sign-bundle --root-key root.private.jwk.json --template template.json --manifest-key manifest.jwk.json \\
      --manifest manifest.jws --allow <measurement> --out trust.json
The measurement is what 'measure' prints for the image and the guest that runs it.
The router needs root.jwk.json, trust.json and manifest.jws (service.release); clients need root.jwk.json.
The private keys stay offline. They are written with mode 0600, and refused when others may read them.

A template holds what a person decides on, for instance:
  { "environment": "production",
    "tcb_floor": { "genoa": { "bootloader": 10, "tee": 0, "snp": 27, "microcode": 88 } },
    "snp_policy": { "allow_smt": true, "required_platform_info": ["alias_check_complete"] },
    "revoked": { "measurements": [], "identity_tags": [], "keys": [] } }
Each list under "revoked" takes values, or { "value": "...", "since": "2026-11-01T00:00:00Z" }.
Dates, version and the lists of tags are filled in. The next bundle is signed with --previous trust.json,
so that its version is higher; sign it before the last one expires.`,
  )

program
  .command('keygen')
  .description('make an ES256 key: a release root, or a key that signs manifests')
  .requiredOption('--private <file>', 'private JWK to write, mode 0600')
  .requiredOption('--public <file>', 'public JWK to write')
  .action(async (options: { private: string; public: string }) => {
    const key = await makeSigningKey({ extractable: true })
    await writeKeyPair(options, key)
    print({ kid: key.kid })
  })

interface ManifestOptions {
  key: string
  version: string
  binary: string
  image: string
  verifier: string
  metadata?: string
  out: string
}

program
  .command('sign-manifest')
  .description('sign what a release is made of; do it once for a release, and ship the file')
  .requiredOption('--key <file>', 'private JWK of the manifest key')
  .requiredOption('--version <version>', 'version of the release')
  .requiredOption('--binary <file>', "the worker's bundle, of which the digest is taken")
  .requiredOption('--image <file>', 'the guest image, of which the digest is taken')
  .requiredOption('--verifier <file>', 'the verifier page, of which the digest is taken')
  .option('--metadata <file>', 'JSON object for build_metadata (SLSA provenance)')
  .requiredOption('--out <file>', 'compact JWS to write')
  .action(async (options: ManifestOptions) => {
    const key = await readPrivateKey(options.key)
    const metadata = options.metadata === undefined ? {} : await readJson(options.metadata)
    const parts = {
      version: options.version,
      binarySha256: await hashFile(options.binary),
      imageSha256: await hashFile(options.image),
      verifierSha256: await hashFile(options.verifier),
      metadata: readMetadata(metadata),
    }
    const { jws, identityTag } = await makeManifest(parts, key)
    await writeDocument(options.out, jws)
    print({ kid: key.kid, workload_identity_tag: identityTag })
  })

interface BundleOptions {
  rootKey: string
  template: string
  previous?: string
  bundleVersion?: number
  days: number
  manifestKey?: string
  keyDays: number
  manifest?: string
  allow: string[]
  simulated?: boolean
  out: string
}

program
  .command('sign-bundle')
  .description('sign what relying parties may accept')
  .requiredOption('--root-key <file>', 'private JWK of the release root')
  .requiredOption(
    '--template <file>',
    'JSON object with floors, policy, environment and revocations',
  )
  .option('--previous <file>', 'the bundle before this one; the version becomes one higher')
  .option(
    '--bundle-version <n>',
    'version, where there is no previous bundle (default: 1)',
    wholeNumber,
  )
  .option('--days <n>', 'how long it is in force', wholeNumber, 30)
  .option('--manifest-key <file>', 'public JWK of the key that signs manifests')
  .option('--key-days <n>', 'how long that key may sign', wholeNumber, 365)
  .option(
    '--manifest <file>',
    'the manifest whose release the following measurements are allowed for',
  )
  .option('--allow <hex>', 'a launch measurement to allow, repeatable', measurement, [])
  .option('--simulated', 'allow the measurement of the simulated platform too; never in production')
  .requiredOption('--out <file>', 'the document to publish as trust.json')
  .action(signBundle)

async function signBundle(options: BundleOptions): Promise<void> {
  const root = await readPrivateKey(options.rootKey)
  const previous =
    options.previous === undefined
      ? undefined
      : await openBundle(await readText(options.previous), root.publicJwk)
  const manifestJws = options.manifest === undefined ? undefined : await readText(options.manifest)
  const manifestKey =
    options.manifestKey === undefined
      ? undefined
      : { jwk: await readPublicKey(options.manifestKey), days: options.keyDays }
  const version = options.bundleVersion ?? (previous?.accepted.version ?? 0) + 1
  await requireOlder(options.out, version, root)
  const bundle = await issueBundle(
    {
      template: readTemplate(await readJson(options.template)),
      version,
      allowed: await allowedGuests(options, manifestJws),
      manifestKey,
      now: new Date(),
      days: options.days,
    },
    { root, previous, manifestJws },
  )
  await writeDocument(options.out, bundle)
  print({ kid: root.kid, version })
}

/** Clients refuse the second of two bundles of one version, and an older one after a newer. */
async function requireOlder(out: string, version: number, root: SigningKey): Promise<void> {
  // Of a pipe or a device nothing would ever come.
  const found = await stat(out).catch(() => undefined)
  if (found?.isFile() !== true) return
  const text = await readText(out)
  const there = await openBundle(text, root.publicJwk).catch(() => undefined)
  if (there === undefined || there.accepted.version < version) return
  throw new ReleaseError(
    `${out} is version ${there.accepted.version} of the bundles of this root: sign the next one with --previous ${out}`,
  )
}

async function allowedGuests({ allow, simulated }: BundleOptions, manifestJws: string | undefined) {
  if (allow.length === 0 && simulated !== true) return []
  if (manifestJws === undefined) {
    throw new ReleaseError('a measurement is allowed for one release: name its --manifest')
  }
  const identityTag = await sha256Hex(manifestJws)
  const measurements =
    simulated === true ? [...allow, toHex(await simulatedMeasurement(identityTag))] : allow
  return measurements.map((one) => ({ measurement: one, workload: WORKLOAD, identityTag }))
}

addMeasureCommand(program)
addRotateCommands(program)
addLogCommands(program)
addPageCommand(program)

export function releaseSubcommand(): Subcommand {
  const told = [ReleaseError, MalformedEvidence]
  const explain = explainer({ told })
  return { command: program, explain: (error, words) => explain(withFault(error), words) }
}

/** Monitors are programs: they are told the name of the fault, which is stable, and not only its description. */
function withFault(error: unknown): unknown {
  if (!(error instanceof TransparencyError)) return error
  return new ReleaseError(`${error.fault}: ${error.message}`, { cause: error })
}
