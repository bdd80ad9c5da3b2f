import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toBase64, type Bytes } from '../../../protocol/bytes.ts'
import { sha256Hex } from '../../../protocol/digest.ts'
import {
  checkLogSignature,
  decodeHash,
  parseCheckpoint,
} from '../../../verify/transparency/checkpoint.ts'
import { checkConsistency, type TreeHead } from '../../../verify/transparency/merkle.ts'
import {
  formatSignatureLine,
  parseNote,
  type NoteKey,
} from '../../../verify/transparency/signed-note.ts'
import { TransparencyError } from '../../../verify/transparency/transparency-error.ts'
import { readTreeHead } from './log-files.ts'
import type { NoteSigner } from './note-signer.ts'

/** The HTTP answer of a witness. */
export interface WitnessAnswer {
  readonly status: number
  readonly type: string
  readonly body: string
}

export interface WitnessDeps {
  readonly signer: NoteSigner
  /** The logs it watches, by their keys; a log's name is its origin. */
  readonly logs: readonly NoteKey[]
  /** Where it stores what it has cosigned. */
  readonly stateDir: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const OLD = /^old (0|[1-9]\d{0,15})$/
const MAX_PROOF_LINES = 63

/**
 * A witness (c2sp.org/tlog-witness): cosigns a tree of a log only when it extends the last tree that it cosigned, and
 * stores the new tree before it answers.
 */
export class LogWitness {
  readonly #deps: WitnessDeps
  /** Submissions of one log are handled one after the other. */
  readonly #queues = new Map<string, Promise<unknown>>()

  constructor(deps: WitnessDeps) {
    this.#deps = deps
  }

  /** Handles the body of an `add-checkpoint`. */
  async addCheckpoint(body: string): Promise<WitnessAnswer> {
    const request = parseSubmission(body)
    if (request === undefined) return plain(400, 'the request is malformed')
    const log = this.#deps.logs.find(({ name }) => name === request.checkpoint.origin)
    if (log === undefined) return plain(404, 'the log is unknown')
    try {
      checkLogSignature(request.note, log)
    } catch (error) {
      if (error instanceof TransparencyError) return plain(403, 'the log did not sign this')
      throw error
    }
    if (request.older > request.checkpoint.size) return plain(400, 'the old size is the larger one')
    return this.#serialize(log.name, () => this.#cosign(request))
  }

  async #cosign({ note, checkpoint, older, proof }: WitnessRequest): Promise<WitnessAnswer> {
    const known = await readTreeHead(await this.#path(checkpoint.origin))
    if (known.size !== older) {
      return { status: 409, type: 'text/x.tlog.size', body: `${known.size}\n` }
    }
    try {
      checkConsistency(known, checkpoint, proof)
    } catch (error) {
      if (error instanceof TransparencyError) return plain(422, 'the trees are inconsistent')
      throw error
    }
    await this.#remember(checkpoint.origin, checkpoint)
    const signature = this.#deps.signer.sign(note.text, Math.floor(this.#deps.now() / 1_000))
    return plain(200, formatSignatureLine(signature))
  }

  async #remember(origin: string, { size, root }: TreeHead): Promise<void> {
    const path = await this.#path(origin)
    await mkdir(this.#deps.stateDir, { recursive: true })
    const text = JSON.stringify({ origin, size, root: toBase64(root) })
    await writeFile(`${path}.new`, text, { mode: 0o600, flush: true })
    await rename(`${path}.new`, path)
  }

  async #path(origin: string): Promise<string> {
    return join(this.#deps.stateDir, `${await sha256Hex(origin)}.json`)
  }

  #serialize(log: string, step: () => Promise<WitnessAnswer>): Promise<WitnessAnswer> {
    const done = (this.#queues.get(log) ?? Promise.resolve()).then(step, step)
    this.#queues.set(log, done)
    return done
  }
}

type WitnessRequest = NonNullable<ReturnType<typeof parseSubmission>>

function parseSubmission(body: string) {
  try {
    const split = body.indexOf('\n\n')
    const [first = '', ...lines] = body.slice(0, Math.max(split, 0)).split('\n')
    const older = OLD.exec(first)?.[1]
    if (older === undefined || lines.length > MAX_PROOF_LINES) return undefined
    const note = parseNote(body.slice(split + 2))
    const proof: readonly Bytes[] = lines.map(decodeHash)
    return { note, checkpoint: parseCheckpoint(note.text), older: Number(older), proof }
  } catch (error) {
    if (error instanceof TransparencyError) return undefined
    throw error
  }
}

function plain(status: number, line: string): WitnessAnswer {
  return { status, type: 'text/plain; charset=utf-8', body: `${line}\n` }
}
