import { noteSigner } from '../../src/cli/release/log/note-signer.ts'
import { utf8 } from '../../src/protocol/bytes.ts'
import { formatCheckpoint } from '../../src/verify/transparency/checkpoint.ts'
import { formatNote, formatNoteKey } from '../../src/verify/transparency/signed-note.ts'
import { formatTlogProof } from '../../src/verify/transparency/tlog-proof.ts'
import { merkleRoot, treeOf } from './merkle-reference.ts'

/** A public log of releases with one witness. */

const LOG = noteSigner('router.example/releases', 'ed25519', new Uint8Array(32).fill(1))
const WITNESS = noteSigner('witness.example', 'cosignature', new Uint8Array(32).fill(2))

/** The policy document of someone who trusts that log. */
export const LOG_POLICY = {
  log: formatNoteKey(LOG.key),
  witnesses: [formatNoteKey(WITNESS.key)],
  quorum: 1,
  max_age_seconds: 3600,
} as const

/**
 * Proofs of a log that has a manifest and a trust bundle as its entries.
 * @param cosignedAt when its witness has seen it, in milliseconds since 1970
 */
export async function logProofsOf(
  [manifest, bundle]: readonly [manifest: string, bundle: string],
  cosignedAt: number,
) {
  const entries = [manifest, bundle].map(utf8)
  const head = { origin: LOG.key.name, size: entries.length, root: merkleRoot(entries) }
  const text = formatCheckpoint(head)
  const seconds = Math.floor(cosignedAt / 1_000)
  const signatures = [LOG.sign(text, seconds), WITNESS.sign(text, seconds)]
  const checkpoint = formatNote({ text, signatures })
  const proof = async (index: number) =>
    formatTlogProof({ index, hashes: await treeOf(entries).inclusion(index), checkpoint })
  return { manifest: await proof(0), trust_bundle: await proof(1) }
}
