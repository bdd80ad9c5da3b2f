import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { run } from '../support/run-program.ts'

const packageSchema = z.object({ version: z.string() })

const PROGRAM = join(PROJECT_DIR, 'src/cli/main.ts')

function cmr(...args: string[]) {
  return promisify(execFile)(process.execPath, [PROGRAM, ...args])
}

describe('the program', () => {
  test('lists its commands, without loading any of them', async () => {
    const { stdout } = await cmr('--help')
    expect(stdout).toContain('Usage: confidential-model-router')
    expect(stdout).toMatch(/^ {2}serve +serve in production mode$/m)
  })

  test('refuses a command that it does not have, with the list of those it has', async () => {
    await expect(cmr('sevre')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/unknown command 'sevre'[^]*Did you mean serve[^]*Commands:/),
    })
  })

  test.each(['start', 'serve', 'admin', 'verify', 'proxy', 'release'])(
    'ends with 2 where %s does not understand a word',
    async (command) => {
      await expect(cmr(command, '--colour')).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/error: (unknown option '--colour'|required option)/),
      })
    },
  )

  test('tells its version, which is that of the package', async () => {
    const { version } = packageSchema.parse(
      JSON.parse(readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8')),
    )
    expect(await cmr('--version')).toMatchObject({ stdout: `${version}\n`, stderr: '' })
  })

  test('does not take a name of JavaScript for a command', async () => {
    await expect(cmr('constructor')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("unknown command 'constructor'"),
    })
  })

  test('shows the help of a command by its name, as with --help', async () => {
    const [byName, byOption] = await Promise.all([cmr('help', 'verify'), cmr('verify', '--help')])
    expect(byName.stdout).toBe(byOption.stdout)
    expect(byName.stdout).toContain('attestation')
  })

  test.each([
    ['127.0.0.1:8787', '127.0.0.1:8787 is no address of a router, such as http://127.0.0.1:8787'],
    ['http://127.0.0.1:1/v1', 'http://127.0.0.1:1/v1 has a path: give http://127.0.0.1:1 alone'],
    ['http://127.0.0.1:1', 'the router cannot be reached at http://127.0.0.1:1'],
    [
      'http://user:word@127.0.0.1:1/v1',
      'leave user name and password out of the address of the router, which takes the admin token alone',
    ],
    [
      'http://router.example',
      'the admin token is not sent to http://router.example in the clear: give an https address, or that of the proxy on this machine',
    ],
  ])('says of the address %s what is wrong with it', async (address, message) => {
    const env = { ...process.env, ROUTER_URL: address, ADMIN_TOKEN: 'a'.repeat(32) }
    const asked = promisify(execFile)(process.execPath, [PROGRAM, 'admin', 'customers', 'list'], {
      env,
    })
    await expect(asked).rejects.toMatchObject({ code: 1, stderr: `error: ${message}\n` })
  })

  test('sends the admin token of the local stack to no other machine', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'cmr-main-'))
    const local = {
      base_url: 'http://127.0.0.1:1',
      tls_base_url: 'https://127.0.0.1:1',
      api_key: 'key',
      customer_id: 'customer',
      pids: { worker: 1, enclave: 1 },
      admin_token: 'a'.repeat(32),
      root_key: 'root.jwk.json',
      pid: 1,
    }
    await writeFile(join(directory, 'local.json'), JSON.stringify(local))
    const where = ['--base-url', 'https://router.invalid', '--state-dir', directory]
    const asked = cmr('admin', ...where, 'customers', 'list')
    await expect(asked).rejects.toMatchObject({
      code: 1,
      stderr:
        'error: give the admin token of https://router.invalid, by --token-file, ADMIN_TOKEN or ADMIN_TOKEN_FILE\n',
    })
    await rm(directory, { recursive: true })
  })

  test.each([
    ['release sign-manifest --key no --version 1 --binary no --image no --verifier no --out no', 1],
    ['release log check no --proof no --policy no', 1],
    ['image cmdline --config no', 1],
    ['disconnect claude', 1],
    ['admin customers list', 1],
    ['verify bundle no --root-key no', 2],
    ['provider check one --config no', 2],
    ['unseal --watch no', 2],
  ])(
    'begins its reason with "error: " where %s fails, and prints it on standard error',
    async (words, code) => {
      const directory = await mkdtemp(join(tmpdir(), 'cmr-main-'))
      const env = { ...process.env, HOME: directory, STATE_DIR: directory }
      const failed = await run(words.split(' '), { env, cwd: directory })
      expect(failed).toEqual({ code, out: '', err: expect.stringMatching(/^error: [^\n]+\n$/) })
      await rm(directory, { recursive: true })
    },
  )

  test.each([
    [['admin', '--token=hunter2', 'customers', 'list'], '--token'],
    [
      ['proxy', "--api-key=hunter2'=", '--router', 'https://a.invalid', '--root-key', 'x'],
      '--api-key',
    ],
  ])(
    'names an option that there is not, and quotes nothing that was given to it',
    async (words, option) => {
      const { code, out, err } = await run(words)
      expect({ code, out, first: err.split('\n')[0] }).toEqual({
        code: 2,
        out: '',
        first: `error: unknown option '${option}'`,
      })
      expect(err).not.toContain('hunter2')
    },
  )

  test('names the option of a token that cannot be read, not the variable', async () => {
    expect(await run(['admin', '--token-file', '/nowhere', 'customers', 'list'])).toEqual({
      code: 1,
      out: '',
      err: 'error: --token-file: /nowhere cannot be read (ENOENT)\n',
    })
  })

  test('takes only a count or "none" for the limits of a key, for no other text means no limit', async () => {
    const words = ['admin', 'keys', 'create', 'c', '--name', 'x', '--requests-per-minute']
    for (const count of ['abc', '', '1.5', '-1']) {
      const { code, err } = await run([...words, count])
      expect({ code, err }).toEqual({
        code: 2,
        err: expect.stringContaining(`'${count}' is invalid. give a whole number, or none`),
      })
    }
  })

  test.each(['', 'two\nlines', 'schlüssel'])(
    'sends no admin token %o, which no header can carry',
    async (token) => {
      const directory = await mkdtemp(join(tmpdir(), 'cmr-main-'))
      const file = join(directory, 'token')
      await writeFile(file, token)
      const script = '"$@" < "$0"'
      const words = [
        'admin',
        '--base-url',
        'http://127.0.0.1:9',
        '--token-file',
        '-',
        'customers',
        'list',
      ]
      const asked = promisify(execFile)('/bin/sh', [
        '-c',
        script,
        file,
        process.execPath,
        PROGRAM,
        ...words,
      ])
      await expect(asked).rejects.toMatchObject({
        code: 1,
        stderr: 'error: the admin token is one line of letters of ASCII, without spaces\n',
      })
      await rm(directory, { recursive: true })
    },
  )

  test('says which commit there is not', async () => {
    expect(await run(['image', 'build', '--commit', 'nope'])).toEqual({
      code: 1,
      out: '',
      err: 'error: this checkout has no commit nope\n',
    })
  })

  test('says that there is no help of what is no command', async () => {
    expect(await run(['help', 'sevre'])).toMatchObject({
      code: 2,
      err: expect.stringContaining("error: unknown command 'sevre'"),
    })
  })

  test('names the whole command in the help of a part of it', async () => {
    const { stdout } = await cmr('release', 'measure', '--help')
    expect(stdout).toContain('Usage: confidential-model-router release measure')
  })
})
