import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { concatBytes, equalBytes, utf8, type Bytes } from '../../../protocol/bytes.ts'
import {
  checkLogSignature,
  formatCheckpoint,
  parseCheckpoint,
  type Checkpoint,
} from '../../../verify/transparency/checkpoint.ts'
import { emptyRoot, HASH_BYTES, hashLeaf } from '../../../verify/transparency/merkle.ts'
import {
  formatNote,
  type NoteSignature,
  type SignedNote,
} from '../../../verify/transparency/signed-note.ts'
import {
  entriesPath,
  fold,
  TILE_WIDTH,
  tilePath,
  TileTree,
  tileWidth,
  type TileAddress,
} from '../../../verify/transparency/tiles.ts'
import { ReleaseError } from '../release-error.ts'
import { MAX_ENTRY_BYTES, prefixEntry, splitEntries } from './entry-bundle.ts'
import type { NoteSigner } from './note-signer.ts'
import { readNote } from './read-note.ts'

const CHECKPOINT = 'checkpoint'
const PENDING = 'checkpoint.pending'

/** A tree head with the log's own signature. */
export interface SignedHead {
  readonly head: Checkpoint
  readonly text: string
  readonly signature: NoteSignature
}

/**
 * A log as a folder of static files that any web server can serve: `checkpoint` and `tile/…`. One program at a time
 * appends to it, on the machine that holds the log's key.
 */
export class LogDirectory {
  readonly #path: string
  readonly #signer: NoteSigner

  constructor(path: string, signer: NoteSigner) {
    this.#path = path
    this.#signer = signer
  }

  /**
   * The last published checkpoint; before the first entry, that of the empty tree.
   * @throws TransparencyError when the stored checkpoint is not signed by this log
   */
  async head(): Promise<Checkpoint> {
    const published = await this.#signedNote(CHECKPOINT)
    return published === undefined
      ? { origin: this.#signer.key.name, size: 0, root: emptyRoot() }
      : parseCheckpoint(published.text)
  }

  /** A tree head that was signed, and possibly sent to witnesses, but never published. */
  async pending(): Promise<SignedHead | undefined> {
    const note = await this.#signedNote(PENDING)
    const [signature] = note?.signatures ?? []
    if (note === undefined || signature === undefined) return undefined
    return { head: parseCheckpoint(note.text), text: note.text, signature }
  }

  /**
   * Appends an entry and returns the tree with it. Nothing is published yet: the checkpoint still names the old tree.
   * @throws ReleaseError when the folder does not hold the tree that its checkpoint names
   */
  async append(entry: Uint8Array): Promise<{ readonly index: number; readonly head: Checkpoint }> {
    if (entry.length === 0 || entry.length > MAX_ENTRY_BYTES) {
      throw new ReleaseError(
        `an entry has 1 to ${MAX_ENTRY_BYTES} bytes, this one has ${entry.length}`,
      )
    }
    const before = await this.head()
    if (!equalBytes(await this.tree(before.size).root(), before.root)) {
      throw new ReleaseError('the files of the log do not lead to the root of its checkpoint')
    }
    const index = before.size
    await this.#appendTo((width) => entriesPath(tileIndex(index), width), index, prefixEntry(entry))
    await this.#addHash(0, index, hashLeaf(entry))
    const size = index + 1
    return { index, head: { origin: before.origin, size, root: await this.tree(size).root() } }
  }

  /**
   * Signs a tree head and stores it: a log never signs two trees of one size, so everything sent to a witness must
   * become public, even after a crash.
   */
  async sign(head: Checkpoint, seconds: number): Promise<SignedHead> {
    const text = formatCheckpoint(head)
    const signature = this.#signer.sign(text, seconds)
    await this.#replace(PENDING, utf8(formatNote({ text, signatures: [signature] })))
    return { head, text, signature }
  }

  /** Publishes a signed tree head with the signatures of witnesses, and returns the checkpoint. */
  async publish(
    { text, signature }: SignedHead,
    cosignatures: readonly NoteSignature[],
  ): Promise<string> {
    const note = formatNote({ text, signatures: [signature, ...cosignatures] })
    await this.#replace(CHECKPOINT, utf8(note))
    await rm(join(this.#path, PENDING), { force: true })
    return note
  }

  /** The bytes of an entry of the published tree. */
  async entry(index: number): Promise<Bytes> {
    const { size } = await this.head()
    const width = tileWidth(0, tileIndex(index), size)
    const path = entriesPath(tileIndex(index), width)
    const bundle = await this.#read(path)
    const entry = bundle && splitEntries(bundle)[index % TILE_WIDTH]
    if (entry === undefined) throw new ReleaseError(`the log lacks entry ${index}`)
    return entry
  }

  /** The tree of the first `size` entries. */
  tree(size: number): TileTree {
    return new TileTree(size, async (tile) => {
      const bytes = await this.#tile(tile)
      if (bytes === undefined) throw new ReleaseError(`the log lacks ${tilePath(tile)}`)
      return bytes
    })
  }

  /** Adds a hash to a level; a tile that it fills becomes one hash of the level above. */
  async #addHash(level: number, index: number, hash: Bytes): Promise<void> {
    const tile = tileIndex(index)
    const row = await this.#appendTo(
      (width) => tilePath({ level, index: tile, width }),
      index,
      hash,
    )
    if (row.length === TILE_WIDTH * HASH_BYTES) await this.#addHash(level + 1, tile, fold(row))
  }

  /** Writes the next, wider version of a file; the narrower ones stay for the checkpoints that need them. */
  async #appendTo(path: (width: number) => string, index: number, more: Bytes): Promise<Bytes> {
    const width = index % TILE_WIDTH
    const before = width === 0 ? new Uint8Array() : await this.#read(path(width))
    if (before === undefined) throw new ReleaseError(`the log lacks ${path(width)}`)
    const bytes = concatBytes(before, more)
    await this.#replace(path(width + 1), bytes)
    return bytes
  }

  /** A tile of the requested width, from the file of that width or a wider one. */
  async #tile(tile: TileAddress): Promise<Bytes | undefined> {
    const exact = await this.#read(tilePath(tile))
    if (exact !== undefined) return exact
    const full = await this.#read(tilePath({ ...tile, width: TILE_WIDTH }))
    return full?.slice(0, tile.width * HASH_BYTES)
  }

  async #signedNote(name: string): Promise<SignedNote | undefined> {
    const bytes = await this.#read(name)
    if (bytes === undefined) return undefined
    const note = readNote(bytes)
    checkLogSignature(note, this.#signer.key)
    return note
  }

  async #read(name: string): Promise<Bytes | undefined> {
    try {
      return new Uint8Array(await readFile(join(this.#path, name)))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw error
    }
  }

  /** A reader of the file sees either the old bytes or the new ones, even after a crash. */
  async #replace(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.#path, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(`${path}.new`, bytes, { mode: 0o644, flush: true })
    await rename(`${path}.new`, path)
  }
}

function tileIndex(index: number): number {
  return Math.floor(index / TILE_WIDTH)
}
