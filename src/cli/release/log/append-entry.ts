import { formatTlogProof } from '../../../verify/transparency/tlog-proof.ts'
import { ReleaseError } from '../release-error.ts'
import type { LogDirectory, SignedHead } from './log-directory.ts'
import { requestCosignature, type Witness } from './witness-client.ts'
import { messageOfThrown } from '../../../protocol/thrown-message.ts'

export interface AppendDeps {
  readonly log: LogDirectory
  readonly witnesses: readonly Witness[]
  /** The number of witnesses that must cosign before anything is published. */
  readonly quorum: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** An entry in the log, with the proof of its inclusion. */
export interface Appended {
  readonly index: number
  readonly size: number
  /** The text of a tlog-proof. */
  readonly proof: string
  /** The witnesses that did not cosign, with the reason. */
  readonly missing: readonly string[]
}

/**
 * Appends an entry to the log, requests the witnesses' cosignatures of the new tree and publishes the tree.
 * @throws ReleaseError when too few witnesses cosign; the entry is then not in any published tree, and the next call
 *   publishes it before its own
 */
export async function appendEntry(entry: Uint8Array, deps: AppendDeps): Promise<Appended> {
  const { log, now } = deps
  const unfinished = await log.pending()
  if (unfinished !== undefined) await publish(unfinished, deps)
  const { index, head } = await log.append(entry)
  const signed = await log.sign(head, seconds(now))
  const { checkpoint, missing } = await publish(signed, deps)
  const hashes = await log.tree(head.size).inclusion(index)
  return { index, size: head.size, proof: formatTlogProof({ index, hashes, checkpoint }), missing }
}

/**
 * Makes a new checkpoint of the current tree with new cosignatures, and a new proof of one entry: relying parties may
 * require recent cosignatures.
 */
export async function renewProof(index: number, deps: AppendDeps): Promise<Appended> {
  const { log, now } = deps
  const unfinished = await log.pending()
  if (unfinished !== undefined) await publish(unfinished, deps)
  const head = await log.head()
  if (index >= head.size)
    throw new ReleaseError(`the log has ${head.size} entries, and no number ${index}`)
  const { checkpoint, missing } = await publish(await log.sign(head, seconds(now)), deps)
  const hashes = await log.tree(head.size).inclusion(index)
  return { index, size: head.size, proof: formatTlogProof({ index, hashes, checkpoint }), missing }
}

async function publish(
  signed: SignedHead,
  { log, witnesses, quorum }: AppendDeps,
): Promise<{ checkpoint: string; missing: readonly string[] }> {
  const before = await log.head()
  const tree = log.tree(signed.head.size)
  const submission = {
    ...signed,
    size: signed.head.size,
    consistency: (older: number) => tree.consistency(older),
  }
  const answers = await Promise.allSettled(
    witnesses.map((witness) => requestCosignature(witness, submission, before.size)),
  )
  const cosignatures = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const missing = answers.flatMap((one) =>
    one.status === 'rejected' ? [messageOfThrown(one.reason)] : [],
  )
  if (cosignatures.length < quorum) {
    throw new ReleaseError(
      `${cosignatures.length} of the witnesses cosigned, ${quorum} must; nothing was published: ${missing.join('; ')}`,
    )
  }
  return { checkpoint: await log.publish(signed, cosignatures), missing }
}

function seconds(now: () => number): number {
  return Math.floor(now() / 1_000)
}
