import { equalBytes, type Bytes } from '../../../protocol/bytes.ts'
import {
  checkLogSignature,
  parseCheckpoint,
  type Checkpoint,
} from '../../../verify/transparency/checkpoint.ts'
import { checkConsistency, hashLeaf, type TreeHead } from '../../../verify/transparency/merkle.ts'
import type { NoteKey } from '../../../verify/transparency/signed-note.ts'
import {
  entriesPath,
  TILE_WIDTH,
  tilePath,
  TileTree,
  tileWidth,
} from '../../../verify/transparency/tiles.ts'
import type { LogPolicy } from '../../../verify/transparency/log-policy.ts'
import { checkWitnesses, type LoggedEntry } from '../../../verify/transparency/tlog-proof.ts'
import { prefixEntry, splitEntries } from './entry-bundle.ts'
import { readNote } from './read-note.ts'
import { TransparencyError } from '../../../verify/transparency/transparency-error.ts'

/** Reads a file of the log by its path below the log's prefix. */
export type ReadLogFile = (path: string) => Promise<Bytes>

export interface LogAudit {
  readonly checkpoint: Checkpoint
  /** The entries after the known tree. */
  readonly entries: readonly { readonly index: number; readonly bytes: Bytes }[]
  /** The witnesses that cosigned the checkpoint; undefined when the audit requires none. */
  readonly witnesses: LoggedEntry['witnesses'] | undefined
}

/** The log that is audited. */
export interface AuditedLog {
  readonly key: NoteKey
  /**
   * The witnesses that must have cosigned its checkpoint. Without them, a log could consistently show its auditors
   * another history than the witnessed one that relying parties see.
   */
  readonly witnessed?: { readonly policy: LogPolicy; readonly now: number } | undefined
}

/**
 * Audits a log as a monitor does: takes its checkpoint, checks that it continues the known tree, and verifies every
 * entry since against the tree.
 * @throws TransparencyError when a check fails, with the name of the fault
 */
export async function auditLog(
  read: ReadLogFile,
  { key, witnessed }: AuditedLog,
  known: TreeHead,
): Promise<LogAudit> {
  const note = readNote(await read('checkpoint'))
  checkLogSignature(note, key)
  const checkpoint = parseCheckpoint(note.text)
  // The log's name must be the origin. No relying party accepts a proof for a tree of another origin, and a witness
  // would not see such a tree as a second history of this log.
  if (checkpoint.origin !== key.name) {
    throw new TransparencyError('unknown_log', `the checkpoint is of the log ${checkpoint.origin}`)
  }
  const seen = witnessed && checkWitnesses(note, witnessed.policy, witnessed.now)
  const tree = new TileTree(checkpoint.size, (tile) => read(tilePath(tile)))
  const proof = checkpoint.size > known.size ? await tree.consistency(known.size) : []
  checkConsistency(known, checkpoint, proof)
  if (!equalBytes(await tree.root(), checkpoint.root)) {
    throw new TransparencyError(
      'inconsistent_tree',
      "the log's tiles do not lead to the root it signed",
    )
  }
  const entries: { index: number; bytes: Bytes }[] = []
  const first = Math.floor(known.size / TILE_WIDTH)
  for (let tile = first; tile * TILE_WIDTH < checkpoint.size; tile += 1) {
    const width = tileWidth(0, tile, checkpoint.size)
    // Sequential, so that entries are reported in order.
    const bundle = splitBundle(await read(entriesPath(tile, width)), width)
    for (const [at, bytes] of bundle.entries()) {
      const index = tile * TILE_WIDTH + at
      if (!equalBytes(await tree.hash(index, index + 1), hashLeaf(bytes))) {
        throw new TransparencyError('not_included', `entry ${index} is not the one in the tree`)
      }
      if (index >= known.size) entries.push({ index, bytes })
    }
  }
  return { checkpoint, entries, witnesses: seen?.witnesses }
}

function splitBundle(bundle: Bytes, count: number): Bytes[] {
  const entries = splitEntries(bundle)
  const bytes = entries.reduce((sum, entry) => sum + prefixEntry(entry).length, 0)
  if (bytes === bundle.length && entries.length === count) return entries
  throw new TransparencyError('truncated_tree', `a bundle does not hold its ${count} entries`)
}
