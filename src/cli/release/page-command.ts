import type { Command } from 'commander'
import { z } from 'zod'
import { equalBytes, utf8 } from '../../protocol/bytes.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { WORKLOAD } from '../../protocol/envelope.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { publishedTrustBundleSchema, trustBundleSchema } from '../../protocol/trust-bundle.ts'
import { checkManifest } from '../../verify/manifest.ts'
import { verdict } from '../../verify/check.ts'
import { parseCheckpoint } from '../../verify/transparency/checkpoint.ts'
import { hashLeaf, rootFromInclusion } from '../../verify/transparency/merkle.ts'
import { parseNote } from '../../verify/transparency/signed-note.ts'
import { parseTlogProof } from '../../verify/transparency/tlog-proof.ts'
import { imageSchema } from '../image/image-description.ts'
import { openBundle } from './bundle.ts'
import { writeDocument } from './documents.ts'
import { hashFile, readJson, readPublicKey, readText } from './files.ts'
import { releaseHtml, releaseMarkdown, type LogEntry, type Measured } from './release-page.ts'
import { ReleaseError } from './release-error.ts'
import { print } from './terminal.ts'

interface PageOptions {
  rootKey: string
  bundle: string
  manifest: string
  image: string
  measured: string[]
  out: string
  markdown?: string
}

/** `page`: a readable description of a release, from its signed documents. */
export function addPageCommand(program: Command): void {
  program
    .command('page')
    .description(
      'write a page for people: version, commit, digests, measurements, log entry, how to rebuild',
    )
    .requiredOption('--root-key <file>', 'public JWK of the release root')
    .requiredOption('--bundle <file>', 'the published trust.json, with its log proofs')
    .requiredOption('--manifest <file>', 'the signed manifest')
    .requiredOption('--image <file>', 'image.json of the image that the manifest is for')
    .requiredOption(
      '--measured <file>',
      "what 'measure --json' printed for one number of processors, repeatable",
      (path: string, before: readonly string[]) => [...before, path],
      [],
    )
    .requiredOption('--out <file>', 'HTML to write')
    .option('--markdown <file>', 'the same in Markdown')
    .action(writePage)
}

const measuredSchema = z.looseObject({
  measurement: z.string().regex(/^[0-9a-f]{96}$/),
  vcpus: z.int().min(1),
  cpu_signature: z.string(),
  guest_features: z.string(),
  firmware_sha256: z.string(),
  command_line: z.string().nullable(),
})

async function writePage(options: PageOptions): Promise<void> {
  const root = await readPublicKey(options.rootKey)
  const published = await readText(options.bundle)
  const { content } = await openBundle(published, root)
  const bundle = readDocument(trustBundleSchema, content, 'trust bundle')
  const jws = await readText(options.manifest)
  const trust = { bundle, rootJwk: root }
  const now = Date.parse(bundle.issued_at)
  const { checks, manifest } = await checkManifest(jws, WORKLOAD, { trust, now })
  if (!verdict(checks).ok || manifest === undefined) {
    throw new ReleaseError('the manifest does not hold under this bundle')
  }
  if (manifest.image_digest !== `sha256:${await hashFile(options.image)}`) {
    throw new ReleaseError('the manifest is for another image')
  }
  const image = readDocument(imageSchema, await readJson(options.image), 'image description')
  const identityTag = await sha256Hex(jws)
  const allowed = bundle.allowed_measurements
    .filter(({ workload_identity_tag: tag }) => tag === identityTag)
    .map(({ measurement }) => measurement)
  const facts = {
    version: manifest.version,
    workload: manifest.workload,
    commit: image.commit,
    identityTag,
    files: filesOf(manifest, image),
    rootHash: image.root_hash,
    bundle: {
      version: bundle.version,
      environment: bundle.environment,
      expiresAt: bundle.expires_at,
    },
    measurements: await measuredGuests(options.measured, allowed),
    logEntries: logEntriesOf(published, jws),
  }
  await writeDocument(options.out, releaseHtml(facts))
  if (options.markdown !== undefined) await writeDocument(options.markdown, releaseMarkdown(facts))
  print({ version: facts.version, commit: facts.commit, measurements: facts.measurements.length })
}

type Digests = Readonly<Record<'binary_digest', string>> & {
  readonly verifier_digest?: string | undefined
}

function filesOf(manifest: Digests, image: z.output<typeof imageSchema>): [string, string][] {
  return [
    ['vmlinuz', image.kernel_sha256],
    ['initrd.cpio', image.initrd_sha256],
    ['root.img', image.root_sha256],
    ['the worker', withoutPrefix(manifest.binary_digest)],
    ...(manifest.verifier_digest === undefined
      ? []
      : [
          ['the verifier page', withoutPrefix(manifest.verifier_digest)] satisfies [string, string],
        ]),
  ]
}

function withoutPrefix(digest: string): string {
  return digest.replace(/^sha256:/, '')
}

/** Checks that the files describe exactly the measurements that the bundle allows. */
async function measuredGuests(
  paths: readonly string[],
  allowed: readonly string[],
): Promise<readonly Measured[]> {
  const measured = await Promise.all(
    paths.map(async (path) => readDocument(measuredSchema, await readJson(path), path)),
  )
  const foreign = measured.find(({ measurement }) => !allowed.includes(measurement))
  if (foreign !== undefined) {
    throw new ReleaseError(`the bundle does not allow ${foreign.measurement} for this release`)
  }
  const unexplained = allowed.find((one) =>
    measured.every(({ measurement }) => measurement !== one),
  )
  if (unexplained !== undefined) {
    throw new ReleaseError(`nothing says which guest has ${unexplained}: give its --measured file`)
  }
  return measured
    .map((one) => ({
      measurement: one.measurement,
      vcpus: one.vcpus,
      cpuSignature: one.cpu_signature,
      guestFeatures: one.guest_features,
      firmwareSha256: one.firmware_sha256,
      commandLine: one.command_line ?? '',
    }))
    .toSorted((a, b) => a.vcpus - b.vcpus)
}

/** The log entries from the proofs in the published bundle, each checked against its document. */
function logEntriesOf(published: string, manifest: string): readonly LogEntry[] {
  if (!published.startsWith('{')) return []
  const { log_proofs: proofs = {}, trust_bundle_jws: bundle } = readDocument(
    publishedTrustBundleSchema,
    parseStrictJson(published, 'trust bundle'),
    'trust bundle',
  )
  return Object.entries(proofs).flatMap(([name, proof]) => {
    if (proof === undefined) return []
    const { index, hashes, checkpoint } = parseTlogProof(proof)
    const { origin, size, root } = parseCheckpoint(parseNote(checkpoint).text)
    const isManifest = name === 'manifest'
    const document = isManifest ? 'the manifest' : 'the trust bundle'
    const leaf = hashLeaf(utf8(isManifest ? manifest : bundle))
    if (!equalBytes(rootFromInclusion(leaf, index, size, hashes), root)) {
      throw new ReleaseError(`the log proof is of another document than ${document}`)
    }
    return [{ document, log: origin, index, treeSize: size }]
  })
}
