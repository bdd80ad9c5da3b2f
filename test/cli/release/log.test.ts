import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  copyFileSync,
  cpSync,
} from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { concatBytes, fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { messageOfThrown } from '../../../src/protocol/thrown-message.ts'
import {
  appendEntry,
  renewProof,
  type AppendDeps,
} from '../../../src/cli/release/log/append-entry.ts'
import { auditLog } from '../../../src/cli/release/log/audit-log.ts'
import { LogDirectory } from '../../../src/cli/release/log/log-directory.ts'
import { logReader } from '../../../src/cli/release/log/log-files.ts'
import {
  formatNoteSigner,
  noteSigner,
  parseNoteSigner,
} from '../../../src/cli/release/log/note-signer.ts'
import { serveWitness } from '../../../src/cli/release/log/witness-server.ts'
import { LogWitness } from '../../../src/cli/release/log/witness.ts'
import { emptyRoot, hashLeaf } from '../../../src/verify/transparency/merkle.ts'
import { entriesPath, tilePath } from '../../../src/verify/transparency/tiles.ts'
import { prefixEntry } from '../../../src/cli/release/log/entry-bundle.ts'
import { merkleRoot } from '../../support/merkle-reference.ts'
import { formatNoteKey } from '../../../src/verify/transparency/signed-note.ts'
import { checkTlogProof } from '../../../src/verify/transparency/tlog-proof.ts'

const NOW = 1_800_000_000_000
const folder = mkdtempSync(join(tmpdir(), 'cmr-log-'))
const path = (name: string) => join(folder, name)
const seed = (fill: number) => new Uint8Array(32).fill(fill)
const LOG = noteSigner('router.example/releases', 'ed25519', seed(1))
const WITNESS = noteSigner('witness.example', 'cosignature', seed(2))
const EMPTY = { size: 0, root: emptyRoot() }

let server: Server
let url: string

beforeAll(async () => {
  const witness = new LogWitness({
    signer: WITNESS,
    logs: [LOG.key],
    stateDir: path('witness'),
    now: () => NOW,
  })
  server = await serveWitness(witness, { host: '127.0.0.1', port: 0 })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on TCP
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

function toolsOf(name: string, changes: Partial<AppendDeps> = {}): AppendDeps {
  const witnesses = [{ url, key: WITNESS.key }]
  return {
    log: new LogDirectory(path(name), LOG),
    witnesses,
    quorum: 1,
    now: () => NOW,
    ...changes,
  }
}

/** Writes a log of so many entries in one go, from the reference that the tiles are checked against. */
async function plant(name: string, count: number, origin = LOG.key.name): Promise<void> {
  const entries = Array.from({ length: count }, (_, at) => utf8(`entry ${at}`))
  const files = {
    [tilePath({ level: 0, index: 0, width: count })]: concatBytes(...entries.map(hashLeaf)),
    [entriesPath(0, count)]: concatBytes(...entries.map(prefixEntry)),
  }
  for (const [file, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(path(name), file)), { recursive: true })
    writeFileSync(join(path(name), file), bytes)
  }
  const log = new LogDirectory(path(name), LOG)
  const head = { origin, size: count, root: merkleRoot(entries) }
  await log.publish(await log.sign(head, NOW / 1_000), [])
}

const POLICY = {
  log: LOG.key,
  witnesses: [WITNESS.key],
  quorum: 1,
  maxAgeSeconds: 3600,
  required: true,
}

describe('a log of releases', () => {
  it('proves every entry, over tiles that fill up, and a monitor reads them all', async () => {
    const deps = toolsOf('a')
    await plant('a', 255)
    const full = await appendEntry(utf8('entry 255'), deps)
    const next = await appendEntry(utf8('entry 256'), deps)
    expect([full.size, next.size, next.missing]).toEqual([256, 257, []])
    expect(checkTlogProof(next.proof, utf8('entry 256'), POLICY, NOW / 1_000)).toMatchObject({
      index: 256,
      witnesses: [{ name: 'witness.example', seconds: NOW / 1_000 }],
    })
    const renewed = await renewProof(3, deps)
    expect(checkTlogProof(renewed.proof, utf8('entry 3'), POLICY, NOW / 1_000).index).toBe(3)

    expect(fromUtf8(await deps.log.entry(256))).toBe('entry 256')
    await expect(deps.log.entry(257)).rejects.toThrow('the log lacks entry 257')

    const audit = await auditLog(logReader(path('a')), { key: LOG.key }, EMPTY)
    expect(audit.entries.map(({ bytes }) => fromUtf8(bytes))).toEqual(
      Array.from({ length: 257 }, (_, at) => `entry ${at}`),
    )
    const again = await auditLog(logReader(path('a')), { key: LOG.key }, audit.checkpoint)
    expect(again.entries).toEqual([])
  })

  it('finds no witness for a second history, and a monitor names what happened', async () => {
    const fork = toolsOf('fork', { witnesses: [], quorum: 0 })
    for (const text of ['entry 0', 'another']) {
      await appendEntry(utf8(text), fork)
    }
    await expect(
      appendEntry(utf8('third'), { ...fork, witnesses: toolsOf('fork').witnesses, quorum: 1 }),
    ).rejects.toThrow('the witness witness.example knows a longer tree of this log than this one')
    const known = (await auditLog(logReader(path('a')), { key: LOG.key }, EMPTY)).checkpoint
    await expect(auditLog(logReader(path('fork')), { key: LOG.key }, known)).rejects.toMatchObject({
      fault: 'truncated_tree',
    })
    const early = (await auditLog(logReader(path('fork')), { key: LOG.key }, EMPTY)).checkpoint
    cpSync(path('a'), path('rewritten'), { recursive: true })
    await expect(
      auditLog(logReader(path('rewritten')), { key: LOG.key }, early),
    ).rejects.toMatchObject({
      fault: 'inconsistent_tree',
    })
  })

  it('is audited as clients see it: a tree that no witness has cosigned is none that is shown to everybody', async () => {
    const witnessed = { policy: POLICY, now: NOW / 1_000 }
    const audit = await auditLog(logReader(path('a')), { key: LOG.key, witnessed }, EMPTY)
    expect(audit.witnesses).toEqual([{ name: 'witness.example', seconds: NOW / 1_000 }])
    await plant('unwitnessed', 2)
    const alone = logReader(path('unwitnessed'))
    await expect(auditLog(alone, { key: LOG.key, witnessed }, EMPTY)).rejects.toMatchObject({
      fault: 'too_few_witnesses',
      message: '0 of the known witnesses cosigned the checkpoint, 1 must',
    })
    expect(await auditLog(alone, { key: LOG.key }, EMPTY)).toMatchObject({ witnesses: undefined })
    const later = { ...witnessed, now: NOW / 1_000 + 3_601 }
    const frozen = auditLog(logReader(path('a')), { key: LOG.key, witnessed: later }, EMPTY)
    await expect(frozen).rejects.toMatchObject({ fault: 'stale_checkpoint' })
  })

  it('is not audited in the place of another: a tree under another name is none of this log', async () => {
    await plant('renamed', 2, 'router.example/shown-to-auditors')
    await expect(
      auditLog(logReader(path('renamed')), { key: LOG.key }, EMPTY),
    ).rejects.toMatchObject({
      fault: 'unknown_log',
      message: 'the checkpoint is of the log router.example/shown-to-auditors',
    })
  })

  it('publishes after a crash what a witness may have seen, before anything else', async () => {
    const deps = toolsOf('crash', { witnesses: [], quorum: 0 })
    const refused = {
      ...deps,
      witnesses: [{ url: 'http://127.0.0.1:1', key: WITNESS.key }],
      quorum: 1,
    }
    await expect(appendEntry(utf8('first'), refused)).rejects.toThrow(
      '0 of the witnesses cosigned, 1 must; nothing was published: the witness witness.example cannot be reached',
    )
    expect((await deps.log.head()).size).toBe(0)
    const { index } = await appendEntry(utf8('second'), deps)
    expect(index).toBe(1)
    const audit = await auditLog(logReader(path('crash')), { key: LOG.key }, EMPTY)
    expect(audit.entries.map(({ bytes }) => fromUtf8(bytes))).toEqual(['first', 'second'])
  })

  it('is refused by a monitor where an entry or a tile was changed afterwards', async () => {
    for (const file of ['tile/entries/000.p/2', 'tile/0/000.p/2']) {
      const copy = path(`changed-${file.replaceAll('/', '-')}`)
      cpSync(path('crash'), copy, { recursive: true })
      const bytes = readFileSync(join(copy, file))
      bytes.writeUInt8((bytes.at(-1) ?? 0) ^ 1, bytes.length - 1)
      writeFileSync(join(copy, file), bytes)
      await expect(auditLog(logReader(copy), { key: LOG.key }, EMPTY)).rejects.toMatchObject({
        name: 'TransparencyError',
      })
    }
  })

  it('will not grow where its own files do not lead to its checkpoint', async () => {
    cpSync(path('crash'), path('damaged'), { recursive: true })
    copyFileSync(path('fork/tile/0/000.p/2'), path('damaged/tile/0/000.p/2'))
    await expect(
      appendEntry(utf8('third'), toolsOf('damaged', { witnesses: [], quorum: 0 })),
    ).rejects.toThrow('the files of the log do not lead to the root of its checkpoint')
  })
})

describe('a witness', () => {
  const post = (body: string) => fetch(`${url}/add-checkpoint`, { method: 'POST', body })

  it('answers as the protocol has it', async () => {
    const note = readFileSync(path('a/checkpoint'), 'utf8')
    const known = await post(`old 0\n\n${note}`)
    expect([known.status, known.headers.get('content-type'), await known.text()]).toEqual([
      409,
      'text/x.tlog.size',
      '257\n',
    ])
    const again = await post(`old 257\n\n${note}`)
    expect([again.status, (await again.text()).startsWith('— witness.example ')]).toEqual([
      200,
      true,
    ])
    const statuses = [
      await post('nothing of the kind'),
      await post(`old 258\n\n${note}`),
      await post(`old 0\n\n${note.replaceAll('router.example/releases', 'other.example/log')}`),
      await post(`old 257\n\n${note.replace(/(— router\S+ .{20})./, '$1A')}`),
      await post(`old 257\n${'A'.repeat(43)}=\n\n${note}`),
      await fetch(`${url}/add-checkpoint`),
      await fetch(`${url}/sign-subtree`, { method: 'POST' }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([400, 400, 404, 403, 422, 405, 404])
  })

  it('is reported to have refused for what its status means', async () => {
    const refused = (name: string, log = LOG) => {
      const deps = toolsOf(name, { log: new LogDirectory(path(name), log) })
      return appendEntry(utf8('entry'), deps).catch(messageOfThrown)
    }
    const start =
      '0 of the witnesses cosigned, 1 must; nothing was published: the witness witness.example refuses the checkpoint with status '
    const other = noteSigner(LOG.key.name, 'ed25519', seed(3))
    expect(await refused('other-key', other)).toBe(`${start}403: it knows this log by another key`)
    const unknown = noteSigner('other.example/log', 'ed25519', seed(3))
    expect(await refused('unknown', unknown)).toBe(`${start}404: it does not watch this log`)
    cpSync(path('a'), path('split'), { recursive: true })
    await appendEntry(utf8('for all'), toolsOf('a'))
    expect(await refused('split')).toBe(
      `${start}422: this tree does not continue the one that it cosigned last`,
    )
  })

  it('cosigns nothing where the tree that it saw last cannot be read, and says why', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {})
    const [file = ''] = readdirSync(path('witness'))
    const before = readFileSync(path(`witness/${file}`), 'utf8')
    writeFileSync(path(`witness/${file}`), '')
    const note = readFileSync(path('a/checkpoint'), 'utf8')
    expect((await post(`old 0\n\n${note}`)).status).toBe(500)
    expect(said.mock.calls).toEqual([
      [`error: ${path(`witness/${file}`)} is damaged; look into it before removing it`],
    ])
    writeFileSync(path(`witness/${file}`), before)
    said.mockRestore()
  })
})

describe('a private key of a log', () => {
  it('is read back, and refused with a changed character', () => {
    const text = formatNoteSigner(LOG, seed(1))
    expect(formatNoteKey(parseNoteSigner(text).key)).toBe(formatNoteKey(LOG.key))
    expect(() => parseNoteSigner(text.replace('router.', 'rooter.'))).toThrow(
      'the id of the private key is not that of its name and bytes',
    )
    expect(() => parseNoteSigner('something else')).toThrow(
      'the private key of a note is not of the expected form',
    )
  })
})
