import { execFile } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../../src/host/stack/settings.ts'
import { log, newLog } from './new-log.ts'

let folder: string
let verifierKey: string

const at = (name: string) => join(folder, name)

beforeEach(async () => {
  ;({ folder, verifierKey } = await newLog())
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the key of a log of releases', () => {
  test('is not left behind empty where the disk takes none of it', async () => {
    const main = join(PROJECT_DIR, 'src/cli/main.ts')
    const words = ['release', 'log', 'keygen', '--name', 'w', '--private', at('full.key')]
    // No file may have a byte, which a write finds out only once there is one.
    const limited = ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath, main, ...words]
    await expect(promisify(execFile)('/bin/sh', limited)).rejects.toMatchObject({
      code: 1,
      stderr: `error: ${at('full.key')} cannot be written: EFBIG\n`,
    })
    expect(existsSync(at('full.key'))).toBe(false)
  })

  test('can be asked for its verifier key again, as that of a witness can', async () => {
    const words = ['--name', 'witness.example', '--witness', '--private', at('witness.key')]
    const { out: ofWitness } = await log('keygen', ...words)
    const again = (file: string) => log('verifier-key', '--key', at(file))
    const printed = { code: 0, err: '' }
    expect(await again('witness.key')).toEqual({ ...printed, out: ofWitness })
    const { out } = await again('log.key')
    expect(JSON.parse(out)).toEqual({ verifier_key: verifierKey })
    expect(await again('entry')).toEqual({
      code: 1,
      out: '',
      err: `error: ${at('entry')} cannot be used: others may read or change this private key; chmod 600 it\n`,
    })
    chmodSync(at('entry'), 0o600)
    expect(await again('entry')).toEqual({
      code: 1,
      out: '',
      err: 'error: the private key of a note is not of the expected form\n',
    })
  })

  test('is never written over another', async () => {
    const before = readFileSync(at('log.key'), 'utf8')
    expect(await log('keygen', '--name', 'w', '--private', at('log.key'))).toEqual({
      code: 1,
      out: '',
      err: `error: ${at('log.key')} cannot be written: EEXIST\n`,
    })
    expect(readFileSync(at('log.key'), 'utf8')).toBe(before)
  })
})

describe('the keys of a log and of a witness', () => {
  let witnessKey: string

  beforeEach(async () => {
    const made = await log('keygen', '--name', 'w.example', '--witness', '--private', at('w.key'))
    witnessKey = JSON.parse(made.out).verifier_key
  })

  const LOG_FOR_WITNESS =
    'the key of router.example/releases is that of a log, and not of a witness'
  const WITNESS_FOR_LOG = 'the key of w.example is that of a witness, and not of a log'
  const refusal = (message: string) => ({ code: 1, out: '', err: `error: ${message}\n` })

  test('are not taken for one another: nobody accepts what they sign then', async () => {
    const out = ['--out', at('proof')]
    const adding = ['append', at('entry'), '--dir', at('log'), ...out]
    const asked = (key: string) => ['--witness', `http://127.0.0.1:1 ${key}`]
    const state = ['--state', at('state')]
    expect(await log(...adding, '--key', at('w.key'))).toEqual(refusal(WITNESS_FOR_LOG))
    expect(await log(...adding, '--key', at('log.key'), ...asked(verifierKey))).toEqual(
      refusal(LOG_FOR_WITNESS),
    )
    expect(
      await log('witness', '--key', at('log.key'), '--log-key', verifierKey, ...state),
    ).toEqual(refusal(LOG_FOR_WITNESS))
    expect(await log('witness', '--key', at('w.key'), '--log-key', witnessKey, ...state)).toEqual(
      refusal(WITNESS_FOR_LOG),
    )
    expect(await log('audit', at('log'), '--log-key', witnessKey, ...state)).toEqual(
      refusal(WITNESS_FOR_LOG),
    )
    expect(existsSync(at('log'))).toBe(false)
  })

  test('count once: a witness that is named twice is no quorum of two', async () => {
    const words = ['append', at('entry'), '--dir', at('log'), '--key', at('log.key')]
    const twice = ['--witness', `http://127.0.0.1:1 ${witnessKey}`]
    expect(await log(...words, ...twice, ...twice, '--out', at('proof'))).toEqual(
      refusal('--witness names one witness twice'),
    )
    expect(existsSync(at('log'))).toBe(false)
  })

  test('are named to a witness, which would otherwise watch nothing', async () => {
    const made = await log('witness', '--key', at('w.key'), '--state', at('state'))
    expect(made).toMatchObject({ code: 2, out: '' })
    expect(made.err).toContain("required option '--log-key <key>' not specified")
  })

  test('and the address of a witness are shown in its help as they are given', async () => {
    const { out } = await log('witness', '--help')
    expect(out).toContain('where to listen (default: 127.0.0.1:7380)')
    expect(out).not.toContain('default: []')
  })
})
