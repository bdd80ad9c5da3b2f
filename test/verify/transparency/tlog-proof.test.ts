import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { noteSigner } from '../../../src/cli/release/log/note-signer.ts'
import { formatCheckpoint } from '../../../src/verify/transparency/checkpoint.ts'
import { readLogPolicy } from '../../../src/verify/transparency/log-policy.ts'
import {
  formatNote,
  formatNoteKey,
  parseNoteKey,
} from '../../../src/verify/transparency/signed-note.ts'
import { checkTlogProof, formatTlogProof } from '../../../src/verify/transparency/tlog-proof.ts'
import { merkleRoot, treeOf } from '../../support/merkle-reference.ts'

const NOW = 1_800_000_000
const seed = (fill: number) => new Uint8Array(32).fill(fill)
const LOG = noteSigner('router.example/releases', 'ed25519', seed(1))
const ENTRIES = Array.from({ length: 13 }, (_, at) => utf8(`bundle ${at}`))
const WITNESSES = [2, 3, 4].map((fill) => noteSigner(`w${fill}.example`, 'cosignature', seed(fill)))

interface ProofOptions {
  readonly origin?: string
  readonly signer?: typeof LOG
  readonly cosigners?: readonly (typeof LOG)[]
  readonly seconds?: number
  readonly index?: number
  readonly size?: number
}

async function proofText({
  origin = LOG.key.name,
  signer = LOG,
  cosigners = WITNESSES,
  seconds = NOW - 60,
  index = 5,
  size = ENTRIES.length,
}: ProofOptions = {}): Promise<string> {
  const text = formatCheckpoint({ origin, size, root: merkleRoot(ENTRIES.slice(0, size)) })
  const signatures = [signer, ...cosigners].map((one) => one.sign(text, seconds))
  const hashes = await treeOf(ENTRIES, size).inclusion(index)
  return formatTlogProof({ index, hashes, checkpoint: formatNote({ text, signatures }) })
}

function policy(changes: Record<string, unknown> = {}) {
  return readLogPolicy({
    log: formatNoteKey(LOG.key),
    witnesses: WITNESSES.map(({ key }) => formatNoteKey(key)),
    quorum: 2,
    max_age_seconds: 3600,
    ...changes,
  })
}

const ENTRY = utf8('bundle 5')

describe('a proof that an entry stands in a log', () => {
  it('holds under a policy whose log signed and whose witnesses cosigned', async () => {
    const found = checkTlogProof(await proofText(), ENTRY, policy(), NOW)
    expect(found).toMatchObject({ index: 5, checkpoint: { size: 13, origin: LOG.key.name } })
    expect(found.witnesses.map(({ name }) => name)).toEqual([
      'w2.example',
      'w3.example',
      'w4.example',
    ])
  })

  it('ignores extra data, and signatures of keys that nobody knows', async () => {
    const stranger = noteSigner('w9.example', 'cosignature', seed(9))
    const text = await proofText({ cosigners: [...WITNESSES, stranger] })
    const withExtra = text.replace('\n', '\nextra aGVsbG8=\n')
    expect(checkTlogProof(withExtra, ENTRY, policy(), NOW).witnesses).toHaveLength(3)
  })

  it.each([
    ['another entry', 'not_included', {}, {}, utf8('bundle 6')],
    [
      'a stranger’s log',
      'unknown_log',
      { signer: noteSigner('other.example', 'ed25519', seed(7)) },
      {},
      ENTRY,
    ],
    [
      'a stranger under the log’s name',
      'unknown_log',
      { signer: noteSigner(LOG.key.name, 'ed25519', seed(7)) },
      {},
      ENTRY,
    ],
    [
      'another log’s tree, signed by the same key',
      'unknown_log',
      { origin: 'router.example/other' },
      {},
      ENTRY,
    ],
    ['too few witnesses', 'too_few_witnesses', { cosigners: WITNESSES.slice(0, 1) }, {}, ENTRY],
    [
      'one witness many times',
      'too_few_witnesses',
      { cosigners: [WITNESSES[0] ?? LOG, WITNESSES[0] ?? LOG] },
      {},
      ENTRY,
    ],
    [
      'a checkpoint nobody has seen for long',
      'stale_checkpoint',
      { seconds: NOW - 3_601 },
      {},
      ENTRY,
    ],
    ['a cosignature of tomorrow', 'checkpoint_in_future', { seconds: NOW + 86_400 }, {}, ENTRY],
  ] as const)('is refused for %s', async (_what, fault, wish, changes, entry) => {
    const text = await proofText(wish)
    expect(() => checkTlogProof(text, entry, policy(changes), NOW)).toThrow(
      expect.objectContaining({ name: 'TransparencyError', fault }),
    )
  })

  it('is refused with any character of its hashes, root, size, index or signatures changed', async () => {
    const text = await proofText({ cosigners: WITNESSES.slice(0, 2) })
    const proof = policy()
    const accepted: number[] = []
    for (let at = 0; at < text.length; at += 1) {
      const old = text[at] ?? ''
      const changed = `${text.slice(0, at)}${old === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`
      try {
        checkTlogProof(changed, ENTRY, proof, NOW)
        accepted.push(at)
      } catch {
        // As it must be.
      }
    }
    expect(accepted.map((at) => text.slice(at - 5, at + 5))).toEqual([])
  })

  it('is refused where it is cut short anywhere', async () => {
    const text = await proofText({ cosigners: WITNESSES.slice(0, 2) })
    const lengths = Array.from({ length: text.length }, (_, at) => at)
    const accepted = lengths.filter((length) => {
      try {
        checkTlogProof(text.slice(0, length), ENTRY, policy(), NOW)
        return true
      } catch {
        return false
      }
    })
    expect(accepted).toEqual([])
  })

  it('takes a tree of one entry, whose proof has no hashes', async () => {
    const text = await proofText({ index: 0, size: 1 })
    expect(checkTlogProof(text, utf8('bundle 0'), policy(), NOW).checkpoint.size).toBe(1)
  })
})

describe('a log policy', () => {
  const key = formatNoteKey(LOG.key)
  const witness = formatNoteKey(noteSigner('w.example', 'cosignature', seed(5)).key)

  it.each([
    ['more witnesses than it names', { log: key, witnesses: [witness], quorum: 2 }],
    ['one witness twice', { log: key, witnesses: [witness, witness], quorum: 1 }],
    ['a witness’s key as the log’s', { log: witness, witnesses: [], quorum: 0 }],
    ['an age that nobody vouches for', { log: key, quorum: 0, max_age_seconds: 60 }],
    ['no quorum', { log: key, witnesses: [witness] }],
    ['a member it does not know', { log: key, quorum: 0, witnesess: [] }],
  ])('is refused for %s', (_what, document) => {
    expect(() => readLogPolicy(document)).toThrow(
      expect.objectContaining({ fault: 'malformed_key' }),
    )
  })

  it('reads the verifier key that the signed-note specification gives', () => {
    const example = 'sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8'
    expect(formatNoteKey(parseNoteKey(example))).toBe(example)
    expect(() => parseNoteKey(example.replace('033de0ae', '033de0af'))).toThrow(
      expect.objectContaining({ fault: 'malformed_key' }),
    )
  })
})
