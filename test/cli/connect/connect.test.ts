import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { outputOf, run } from '../../support/run-program.ts'

let home: string

beforeEach(() => void (home = mkdtempSync(join(tmpdir(), 'cmr-home-'))))
afterEach(() => rmSync(home, { recursive: true }))

const environment = () => ({ PATH: process.env['PATH'], HOME: home })

const cmr = (...args: string[]) => outputOf(args, { env: environment() })

const CODEX = `# my settings
model = "other" # the one I like
model_provider = "someone"
approval_policy = "never"

[model_providers.someone]
name = "Someone"
model_provider = "kept: it is inside a table"
`

/** A settings file in odd but valid form, without an end of line at its end. */
const JSON_SETTINGS = '{\n    "env": {"A": "b"},\n    "other":   [1, 2]}'

const CASES = [
  ['codex', '.codex/config.toml', CODEX],
  ['codex', '.codex/config.toml', undefined],
  ['claude', '.claude/settings.json', JSON_SETTINGS],
  ['claude', '.claude/settings.json', undefined],
  ['opencode', '.config/opencode/opencode.json', JSON_SETTINGS],
  ['opencode', '.config/opencode/opencode.json', undefined],
] as const

function put(path: string, text: string | undefined): void {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  if (text !== undefined) writeFileSync(join(home, path), text)
}

/** Where the originals are kept, below the home. */
const RECORDS = '.local/state/confidential-model-router/connected'

const textOf = (path: string) => readFileSync(join(home, path), 'utf8')

describe('connect and disconnect', () => {
  test.each(CASES)(
    'show the change to %s in %s, make it, and take it back byte for byte',
    async (tool, path, text) => {
      put(path, text)
      const stdout = await cmr('connect', tool, '--model', 'glm-5', '--yes')
      expect(stdout).toContain(join(home, path))
      expect(stdout).toMatch(/^\+ .*http:\/\/127\.0\.0\.1:8790/m)
      expect(textOf(path)).toContain('http://127.0.0.1:8790')
      expect(textOf(path)).toContain('glm-5')
      await cmr('disconnect', tool)
      expect(existsSync(join(home, path)) ? textOf(path) : undefined).toBe(text)
    },
  )

  test('change the file behind a link, and leave the link where it is', async () => {
    put('dotfiles/claude.json', JSON_SETTINGS)
    put('.claude/settings.json', undefined)
    symlinkSync('../dotfiles/claude.json', join(home, '.claude/settings.json'))
    await cmr('connect', 'claude', '--yes')
    expect(textOf('dotfiles/claude.json')).toContain('http://127.0.0.1:8790')
    await cmr('disconnect', 'claude')
    expect(textOf('dotfiles/claude.json')).toBe(JSON_SETTINGS)
    expect(readlinkSync(join(home, '.claude/settings.json'))).toBe('../dotfiles/claude.json')
  })

  test('leaves nothing connected where the file cannot be written', async () => {
    put('.claude', 'a file where the folder should be')
    const { code, err } = await run(['connect', 'claude', '--yes'], { env: environment() })
    expect([code, err]).toEqual([
      1,
      `error: ${join(home, '.claude/settings.json')} cannot be written, and was not changed\n`,
    ])
    rmSync(join(home, '.claude'))
    await cmr('connect', 'claude', '--yes')
    expect(textOf('.claude/settings.json')).toContain('http://127.0.0.1:8790')
  })

  test('keeps the comments and the tables of codex, and replaces what it chose before', async () => {
    put('.codex/config.toml', CODEX)
    await cmr('connect', 'codex', '--model', 'glm-5', '--yes')
    const made = textOf('.codex/config.toml')
    expect(made).toMatch(
      /^model_provider = "confidential-model-router"\nmodel = "glm-5"\n# my settings\napproval_policy/,
    )
    expect(made).toContain('model_provider = "kept: it is inside a table"')
    expect(made).toMatch(
      /\[model_providers.confidential-model-router\]\n.*\nbase_url = "http:\/\/127.0.0.1:8790\/v1"\nwire_api = "responses"\n$/,
    )
  })

  test.each(['claude', 'opencode'] as const)('keeps what else %s has in its file', async (tool) => {
    const path = tool === 'claude' ? '.claude/settings.json' : '.config/opencode/opencode.json'
    put(path, JSON_SETTINGS)
    await cmr('connect', tool, '--model', 'glm-5', '--yes')
    expect(JSON.parse(textOf(path))).toMatchObject({ env: { A: 'b' }, other: [1, 2] })
  })

  test('changes nothing without confirmation', async () => {
    put('.claude/settings.json', JSON_SETTINGS)
    await expect(cmr('connect', 'claude')).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining('ANTHROPIC_BASE_URL'),
      stderr: 'error: nothing was changed\n',
    })
    expect(textOf('.claude/settings.json')).toBe(JSON_SETTINGS)
  })

  test('does not connect twice, for the first original would be lost', async () => {
    await cmr('connect', 'claude', '--yes')
    await expect(cmr('connect', 'claude', '--yes')).rejects.toMatchObject({
      stderr: 'error: claude is connected already: disconnect it first\n',
    })
  })

  test('says of which tool there is nothing to undo', async () => {
    await expect(cmr('disconnect', 'claude')).rejects.toMatchObject({
      code: 1,
      stderr: 'error: claude is not connected\n',
    })
  })

  test('does not overwrite later changes, unless it is told to', async () => {
    put('.claude/settings.json', JSON_SETTINGS)
    await cmr('connect', 'claude', '--yes')
    writeFileSync(join(home, '.claude/settings.json'), '{"mine": 1}')
    await expect(cmr('disconnect', 'claude')).rejects.toMatchObject({
      stderr: expect.stringContaining('was changed since'),
    })
    expect(textOf('.claude/settings.json')).toBe('{"mine": 1}')
    await cmr('disconnect', 'claude', '--force')
    expect(textOf('.claude/settings.json')).toBe(JSON_SETTINGS)
  })

  test.each([
    [
      'claude',
      '.claude/settings.json',
      '{"a": 1} // mine',
      'the file is no JSON object (comments cannot be kept)',
    ],
    ['claude', '.claude/settings.json', '{"env": 1}', '"env" is no object in this file'],
    ['codex', '.codex/config.toml', 'a = = 1', 'the file is no TOML'],
    [
      'codex',
      '.codex/config.toml',
      'text = """\nmodel_provider = "inside a text"\n"""\n',
      'the file cannot be changed safely: it has an unusual form',
    ],
  ])(
    'leaves %s alone where %s cannot be changed without harm: %s',
    async (tool, path, text, message) => {
      put(path, text)
      await expect(cmr('connect', tool, '--yes')).rejects.toMatchObject({
        code: 1,
        stderr: `error: ${message}\n`,
      })
      expect(textOf(path)).toBe(text)
    },
  )

  test.each([
    ['localhost:8790', 'localhost:8790 is no address of the proxy, such as http://127.0.0.1:8790'],
    ['8790', '8790 is no address of the proxy, such as http://127.0.0.1:8790'],
    [
      'http://192.0.2.7:8790',
      'prompts would go to http://192.0.2.7:8790 in the clear: give the address of the proxy on this machine, or https',
    ],
    [
      'http://user:word@127.0.0.1:8790',
      'leave user name and password out of the address of the proxy, which asks for none',
    ],
    [
      'http://127.0.0.1:8790/other',
      'the address of the proxy has a path: give http://127.0.0.1:8790 alone',
    ],
  ])('connects no tool to %s', async (proxy, message) => {
    for (const tool of ['env', 'claude']) {
      const made = cmr('connect', tool, '--proxy', proxy, '--yes')
      await expect(made).rejects.toMatchObject({
        code: 1,
        stdout: '',
        stderr: `error: ${message}\n`,
      })
    }
  })

  test('names what is no file, and a record that cannot be read', async () => {
    mkdirSync(join(home, '.codex/config.toml'), { recursive: true })
    await expect(cmr('connect', 'codex', '--yes')).rejects.toMatchObject({
      code: 1,
      stderr: `error: ${join(home, '.codex/config.toml')} cannot be read: EISDIR: illegal operation on a directory, read\n`,
    })
    await cmr('connect', 'claude', '--yes')
    const record = join(RECORDS, 'claude.json')
    put(record, '{')
    await expect(cmr('disconnect', 'claude')).rejects.toMatchObject({
      code: 1,
      stderr: `error: ${join(home, record)} is damaged, so that claude is not restored; look into it before removing it\n`,
    })
  })

  test('gives opencode its models', async () => {
    await expect(cmr('connect', 'opencode', '--yes')).rejects.toMatchObject({
      stderr: 'error: opencode has to be told its models: give --model\n',
    })
  })

  test('prints variables for a shell', async () => {
    const stdout = await cmr('connect', 'env', '--proxy', 'http://127.0.0.1:1234/v1')
    expect(stdout).toBe(
      [
        "export OPENAI_BASE_URL='http://127.0.0.1:1234/v1'",
        "export OPENAI_API_KEY='kept-by-the-proxy'",
        "export ANTHROPIC_BASE_URL='http://127.0.0.1:1234'",
        "export ANTHROPIC_AUTH_TOKEN='kept-by-the-proxy'",
        '',
      ].join('\n'),
    )
  })
})
