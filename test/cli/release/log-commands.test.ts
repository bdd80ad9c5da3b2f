import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { lockLog } from '../../../src/cli/release/log/log-lock.ts'
import { PROJECT_DIR } from '../../../src/host/stack/settings.ts'
import { log, newLog } from './new-log.ts'

let folder: string
let verifierKey: string

const at = (name: string) => join(folder, name)

beforeEach(async () => {
  ;({ folder, verifierKey } = await newLog())
})
afterEach(() => rmSync(folder, { recursive: true }))

const append = (entry = at('entry')) =>
  log('append', entry, '--dir', at('log'), '--key', at('log.key'), '--out', at('proof'))

const renew = () =>
  log('renew', '0', '--dir', at('log'), '--key', at('log.key'), '--out', at('proof'))

const audit = (prefix: string) =>
  log('audit', prefix, '--log-key', verifierKey, '--state', at('seen.json'))

const LEAVE_USER_OUT =
  'leave user name and password out of the address of the log, whose files are for everybody'
const NO_ADDRESS = 'a log is read from a folder, or from an http or https address'

const encoded = (text: string) => Buffer.from(text).toString('base64url')

describe('a log of releases', () => {
  test('is changed by one program at a time, so that it never signs two trees of one size', async () => {
    expect(await append()).toMatchObject({ code: 0 })
    const before = readFileSync(at('log/checkpoint'), 'utf8')
    const release = lockLog(at('log.key'))
    const refused = {
      code: 1,
      out: '',
      err: `error: another program signs with ${at('log.key')} at the moment: try again once it has ended\n`,
    }
    expect(await append()).toEqual(refused)
    expect(await renew()).toEqual(refused)
    expect(readFileSync(at('log/checkpoint'), 'utf8')).toBe(before)
    release()
    const again = await append()
    expect(JSON.parse(again.out)).toMatchObject({ index: 1, size: 2 })
    expect(await renew()).toMatchObject({ code: 0 })
  })

  test('is not signed where the lock cannot be written, and the refusal says so', async () => {
    mkdirSync(at('log.key.lock'))
    expect(await append()).toEqual({
      code: 1,
      out: '',
      err: `error: ${at('log.key.lock')}, by which one program at a time signs with this key, cannot be written\n`,
    })
  })

  test('has a witness that runs once: two would not know of each other, and cosign two histories', async () => {
    await log('keygen', '--name', 'witness.example', '--witness', '--private', at('witness.key'))
    const release = lockLog(at('witness.key'))
    const words = ['witness', '--key', at('witness.key'), '--log-key', verifierKey]
    expect(await log(...words, '--state', at('witness-state'), '--listen', '127.0.0.1:0')).toEqual({
      code: 1,
      out: '',
      err: `error: another program signs with ${at('witness.key')} at the moment: try again once it has ended\n`,
    })
    release()
  })

  test.each([
    ['no address', 'hunter2 w.example+00000000+AA=='],
    ['no key', 'https://hunter2.witness.example'],
    ['three words', 'https://witness.example KEY hunter2'],
    ['an empty text', ''],
  ])('does not quote a witness that is %s, for it may hold a secret', async (_, given) => {
    const words = ['--dir', at('log'), '--key', at('log.key'), '--out', at('proof')]
    expect(await log('append', at('entry'), ...words, '--witness', given)).toEqual({
      code: 1,
      out: '',
      err: 'error: --witness is "<url> <verifier key>", in one argument\n',
    })
    expect(existsSync(at('log'))).toBe(false)
  })

  test('refuses the address of a witness with a password in it before anything is signed', async () => {
    const words = ['--dir', at('log'), '--key', at('log.key'), '--out', at('proof')]
    const given = `https://user:hunter2@witness.example ${verifierKey}`
    expect(await log('append', at('entry'), ...words, '--witness', given)).toEqual({
      code: 1,
      out: '',
      err: 'error: leave user name and password out of the address of a witness\n',
    })
    expect(existsSync(at('log'))).toBe(false)
  })

  test.each([
    ['has no folder', 'missing/proof', 'ENOENT'],
    ['is a folder', '.', 'EISDIR'],
  ])(
    'takes no entry where the file for its proof %s: it would stay in the log',
    async (_, file, why) => {
      const out = join(folder, file)
      const words = ['append', at('entry'), '--dir', at('log'), '--key', at('log.key')]
      expect(await log(...words, '--out', out)).toEqual({
        code: 1,
        out: '',
        err: `error: ${out} cannot be written: ${why}\n`,
      })
      expect(existsSync(at('log'))).toBe(false)
    },
  )

  test('has entries from 0 on, and says so where the number of none is given', async () => {
    const words = ['--dir', at('log'), '--key', at('log.key'), '--out', at('proof')]
    const { code, err } = await log('renew', '1.5', ...words)
    expect(code).toBe(2)
    expect(err).toContain('give the number of an entry, from 0 on')
  })

  test('is audited against what was seen before, or not at all', async () => {
    await append()
    writeFileSync(at('seen.json'), '{"size": 1')
    expect(await audit(at('log'))).toEqual({
      code: 1,
      out: '',
      err: `error: ${at('seen.json')} is damaged; look into it before removing it\n`,
    })
    rmSync(at('seen.json'))
    symlinkSync('seen.json', at('seen.json'))
    expect(await audit(at('log'))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^error: ELOOP: .*seen\.json'\n$/),
    })
    rmSync(at('seen.json'))
    expect(await audit(at('log'))).toMatchObject({ code: 0 })
    expect(readdirSync(folder).filter((name) => name.startsWith('seen'))).toEqual(['seen.json'])
  })

  test('counts as seen only once that is printed, so that no later audit leaves out what nobody was told', async () => {
    await append()
    const main = join(PROJECT_DIR, 'src/cli/main.ts')
    const words = ['release', 'log', 'audit', at('log'), '--log-key', verifierKey]
    // Where nothing can be written any more.
    const script = 'exec "$@" > /dev/full'
    const command = [process.execPath, main, ...words, '--state', at('seen.json')]
    const audited = promisify(execFile)('/bin/sh', ['-c', script, 'sh', ...command])
    await expect(audited).rejects.toMatchObject({
      code: 1,
      stderr: 'error: ENOSPC: no space left on device, write\n',
    })
    expect(existsSync(at('seen.json'))).toBe(false)
    const again = await audit(at('log'))
    expect(JSON.parse(again.out)).toMatchObject({ size: 1, new_entries: [{ index: 0 }] })
    expect(existsSync(at('seen.json'))).toBe(true)
  })

  test('is audited under the policy of its clients, where that is given', async () => {
    await append()
    const policy = { log: verifierKey, quorum: 0 }
    writeFileSync(at('policy.json'), JSON.stringify(policy))
    const words = ['audit', at('log'), '--state', at('seen.json')]
    const audited = await log(...words, '--policy', at('policy.json'))
    expect(JSON.parse(audited.out)).toMatchObject({ size: 1, witnesses: [] })
    const { out } = await log('keygen', '--name', 'w', '--witness', '--private', at('other.key'))
    const strict = { ...policy, witnesses: [JSON.parse(out).verifier_key], quorum: 1 }
    writeFileSync(at('policy.json'), JSON.stringify(strict))
    expect(await log(...words, '--policy', at('policy.json'))).toEqual({
      code: 1,
      out: '',
      err: 'error: too_few_witnesses: 0 of the known witnesses cosigned the checkpoint, 1 must\n',
    })
    expect(await log(...words)).toEqual({
      code: 1,
      out: '',
      err: 'error: give --policy, or --log-key\n',
    })
  })

  test('names the file or the address that cannot be read', async () => {
    expect(await append(at('missing'))).toEqual({
      code: 1,
      out: '',
      err: `error: ${at('missing')} cannot be used: ENOENT\n`,
    })
    expect(await audit('http://127.0.0.1:1/log')).toEqual({
      code: 1,
      out: '',
      err: 'error: the log does not answer at http://127.0.0.1:1/log/checkpoint\n',
    })
  })

  test.each([
    ['http://user:word@127.0.0.1:1/log', LEAVE_USER_OUT],
    ['http://user@127.0.0.1:1/log', LEAVE_USER_OUT],
    ['HTTPS://user:word@127.0.0.1:1/log', LEAVE_USER_OUT],
    ['http://user:word@127.0.0.1:99999/log', NO_ADDRESS],
    ['ftp://user:word@127.0.0.1:1/log', NO_ADDRESS],
  ])('is not read from %s, which is not quoted', async (address, message) => {
    expect(await audit(address)).toEqual({ code: 1, out: '', err: `error: ${message}\n` })
    expect(existsSync(at('seen.json'))).toBe(false)
  })

  test('names what a log has in the place of its checkpoint', async () => {
    await append()
    writeFileSync(at('log/checkpoint'), Buffer.from([0xff, 0xfe]))
    const refused = {
      code: 1,
      out: '',
      err: 'error: malformed_checkpoint: the checkpoint is not UTF-8\n',
    }
    expect(await audit(at('log'))).toEqual(refused)
    expect(await renew()).toEqual(refused)
  })

  test.each([
    ['{"a":', 'malformed PATH: not JSON'],
    ['{}', 'PATH is no published trust bundle'],
    [Buffer.from([0xff, 0xfe]), 'PATH cannot be used: not UTF-8'],
  ])('takes no entry of %o', async (content, message) => {
    writeFileSync(at('entry'), content)
    const err = `error: ${message.replace('PATH', at('entry'))}\n`
    expect(await append()).toEqual({ code: 1, out: '', err })
    expect(existsSync(at('log'))).toBe(false)
  })

  test.each([
    ['{"a":', 'malformed PATH: not JSON'],
    ['an entry', 'malformed PATH: not JSON'],
    ['{}', 'PATH is no published trust bundle'],
  ])('gets no entry whose proof cannot be put into %s', async (content, message) => {
    writeFileSync(at('trust.json'), content)
    const words = ['append', at('entry'), '--dir', at('log'), '--key', at('log.key')]
    const made = await log(...words, '--out', at('proof'), '--attach', at('trust.json'))
    const err = `error: ${message.replace('PATH', at('trust.json'))}\n`
    expect(made).toEqual({ code: 1, out: '', err })
    expect(existsSync(at('log'))).toBe(false)
  })

  test('puts a proof into the bundle that the entry is, or that allows it as its manifest, and into no other', async () => {
    const [header, signature] = ['{"alg":"ES256"}', 'signature'].map(encoded)
    const allowed = createHash('sha256').update('an entry').digest('hex')
    const payload = encoded(JSON.stringify({ allowed_identity_tags: [allowed] }))
    const jws = `${header}.${payload}.${signature}`
    writeFileSync(at('trust.json'), JSON.stringify({ trust_bundle_jws: jws }))
    writeFileSync(at('former'), 'a manifest of long ago')
    const words = ['--dir', at('log'), '--key', at('log.key'), '--out', at('proof')]
    const attach = ['--attach', at('trust.json')]
    const proofs = () => JSON.parse(readFileSync(at('trust.json'), 'utf8')).log_proofs
    const refused = {
      code: 1,
      out: '',
      err: `error: the entry is neither the trust bundle in ${at('trust.json')} nor a manifest that it allows; its proof is not attached\n`,
    }
    expect(await log('append', at('former'), ...words, ...attach)).toEqual(refused)
    expect(existsSync(at('log'))).toBe(false)

    await log('append', at('former'), ...words)
    expect(await log('append', at('entry'), ...words, ...attach)).toMatchObject({ code: 0 })
    const manifest = readFileSync(at('proof'), 'utf8')
    expect(await log('append', at('trust.json'), ...words, ...attach)).toMatchObject({ code: 0 })
    const both = { manifest, trust_bundle: readFileSync(at('proof'), 'utf8') }
    expect(proofs()).toEqual(both)
    expect(await log('renew', '0', ...words, ...attach)).toEqual(refused)
    expect(proofs()).toEqual(both)
    expect(await log('renew', '1', ...words, ...attach)).toMatchObject({ code: 0 })
    expect(proofs()).toEqual({ ...both, manifest: readFileSync(at('proof'), 'utf8') })
  })

  test('says of a folder that it is no key, and not that its mode is to be changed', async () => {
    mkdirSync(at('folder'))
    const words = ['--dir', at('log'), '--key', at('folder'), '--out', at('proof')]
    expect(await log('append', at('entry'), ...words)).toMatchObject({
      code: 1,
      err: `error: ${at('folder')} cannot be used: EISDIR\n`,
    })
  })

  test('keeps a link to the proof that it replaces', async () => {
    writeFileSync(at('real'), 'old')
    symlinkSync('real', at('proof'))
    await append()
    expect(readFileSync(at('real'), 'utf8')).toBe(readFileSync(at('proof'), 'utf8'))
    expect(readFileSync(at('real'), 'utf8')).toMatch(/^c2sp\.org\/tlog-proof/)
  })
})
