import type { Command } from 'commander'
import { makeSigningKey } from '../../enclave/release/signing-key.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { openBundle } from './bundle.ts'
import { writeDocument, writeDocuments } from './documents.ts'
import { readPrivateKey, readPublicKey, readText, writeKeyPair } from './files.ts'
import { ReleaseError } from './release-error.ts'
import { rotateManifestKey, rotateRoot, type ManifestKeyRotation } from './rotate.ts'
import { print, wholeNumber } from './terminal.ts'
import { parseNow } from '../verify/parse-now.ts'

interface RotateManifestOptions {
  rootKey: string
  bundle: string
  manifest: string
  private: string
  public: string
  revoke?: boolean
  revokedSince?: number
  days: number
  keyDays: number
  outManifest: string
  outBundle: string
}

interface RotateRootOptions {
  rootKey: string
  newRootKey: string
  bundle: string
  days: number
  out: string
}

/** `rotate manifest-key` and `rotate root`. */
export function addRotateCommands(program: Command): void {
  const rotate = program.command('rotate').description('replace a key')
  rotate
    .command('manifest-key')
    .description('make a new manifest key, sign the manifest with it, and a bundle that names it')
    .requiredOption('--root-key <file>', 'private JWK of the release root')
    .requiredOption('--bundle <file>', 'the bundle in force')
    .requiredOption('--manifest <file>', 'the manifest in use')
    .requiredOption('--private <file>', 'private JWK to write, mode 0600')
    .requiredOption('--public <file>', 'public JWK to write')
    .option('--revoke', 'withdraw the old key and the old identity tag')
    .option('--revoked-since <time>', 'with --revoke: not to be trusted since (RFC 3339)', parseNow)
    .option('--days <n>', 'how long the bundle is valid', wholeNumber, 30)
    .option('--key-days <n>', 'how long the new key may sign', wholeNumber, 365)
    .requiredOption('--out-manifest <file>', 'manifest to write')
    .requiredOption('--out-bundle <file>', 'bundle to write')
    .action(replaceManifestKey)
  rotate
    .command('root')
    .description('sign the bundle with a new root; clients must be given its public key')
    .requiredOption('--root-key <file>', 'public JWK of the root that signed the bundle')
    .requiredOption('--new-root-key <file>', 'private JWK of the new root, from keygen')
    .requiredOption('--bundle <file>', 'the bundle in force')
    .option('--days <n>', 'how long the bundle is valid', wholeNumber, 30)
    .requiredOption('--out <file>', 'bundle to write')
    .action(replaceRoot)
}

async function replaceManifestKey(options: RotateManifestOptions): Promise<void> {
  const root = await readPrivateKey(options.rootKey)
  const newKey = await makeSigningKey({ extractable: true })
  const rotated = await rotateManifestKey({
    root,
    previous: await openBundle(await readText(options.bundle), root.publicJwk),
    manifestJws: await readText(options.manifest),
    newKey,
    revoke: revocation(options),
    now: new Date(),
    days: options.days,
    keyDays: options.keyDays,
  })
  const documents = [
    { path: options.outManifest, text: rotated.manifestJws },
    { path: options.outBundle, text: rotated.bundle },
  ]
  await writeDocuments(documents, () => writeKeyPair(options, newKey))
  print({ kid: newKey.kid, workload_identity_tag: await sha256Hex(rotated.manifestJws) })
}

function revocation({
  revoke,
  revokedSince,
}: RotateManifestOptions): ManifestKeyRotation['revoke'] {
  if (revoke !== true) {
    if (revokedSince !== undefined) throw new ReleaseError('--revoked-since needs --revoke')
    return false
  }
  return { since: revokedSince === undefined ? undefined : new Date(revokedSince) }
}

async function replaceRoot(options: RotateRootOptions): Promise<void> {
  const newRoot = await readPrivateKey(options.newRootKey)
  const oldRoot = await readPublicKey(options.rootKey)
  const previous = await openBundle(await readText(options.bundle), oldRoot)
  const bundle = await rotateRoot({ previous, newRoot, now: new Date(), days: options.days })
  await writeDocument(options.out, bundle)
  print({ kid: newRoot.kid, version: previous.accepted.version + 1 })
}
