import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fromUtf8, utf8 } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { commandLine } from '../../src/cli/image/command-line.ts'
import { writeCpio } from '../../src/cli/image/cpio.ts'
import { checkConfiguration, HostInputError, readSecrets } from '../../src/host/guest/host-input.ts'
import { readInputs } from '../../src/cli/image/inputs.ts'
import { makePlainScript } from '../../src/cli/build/plain-script.ts'
import { BLOCK_BYTES, makeVerityDisk } from '../../src/cli/image/verity.ts'

describe('the hash tree of the root disk', () => {
  it('has the root hash that veritysetup computes', () => {
    const data = Uint8Array.from(
      { length: 1300 * BLOCK_BYTES },
      (_, i) => (i * 31 + (i >> 12)) & 255,
    )
    const disk = makeVerityDisk(data)
    // veritysetup 2.6.1 format --salt=- over the same bytes.
    expect(disk.rootHash).toBe('60de3d029871e7de8c747f9984b95022aac7880b0fe49a4bafba62e8abfdc468')
    expect(disk.dataBlocks).toBe(1300)
    // 1,300 digests fill 11 blocks, and these one more.
    expect(disk.bytes.length / BLOCK_BYTES).toBe(1300 + 1 + 12)
  })

  it('changes with one bit of the data', () => {
    const data = new Uint8Array(200 * BLOCK_BYTES)
    const before = makeVerityDisk(data).rootHash
    data[data.length - 1] = 1
    expect(makeVerityDisk(data).rootHash).not.toBe(before)
  })
})

describe('the initrd', () => {
  const entries = [
    { path: 'init', mode: 0o755, bytes: utf8('abc') },
    { path: 'dev', mode: 0o755 },
  ]

  it('is the same whatever the order of its parts', () => {
    expect(writeCpio(entries.toReversed(), 1)).toEqual(writeCpio(entries, 1))
  })

  it('holds names and contents on four-byte borders, sorted, and ends with the trailer', () => {
    const text = fromUtf8(writeCpio(entries, 0x1234))
    const head = (inode: string, mode: string, links: string, size: string, name: string) =>
      `070701${inode}${mode}${'0'.repeat(16)}${links}00001234${size}${'0'.repeat(32)}${name}${'0'.repeat(8)}`
    expect(
      text.startsWith(`${head('00000001', '000041ed', '00000002', '00000000', '00000004')}dev\0`),
    ).toBe(true)
    expect(text).toContain(
      `${head('00000002', '000081ed', '00000001', '00000003', '00000005')}init\0\0abc\0`,
    )
    expect(text).toMatch(/TRAILER!!!\0+$/)
    expect(text.length % 4).toBe(0)
  })
})

describe('the command line', () => {
  it('is the one that docs/image.md gives in full, with the bindings behind it', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/image.md'), 'utf8')
    const [, settings = ''] = /The command line in full: `([^`]+)`/.exec(page) ?? []
    const line = commandLine({ rootHash: 'ab', rootBlocks: 7 }, utf8('{}'))
    const bindings = /^cmr\.root=ab cmr\.root_blocks=7 cmr\.config=[0-9a-f]{64}$/
    expect(line.startsWith(`${settings.replaceAll('\n', ' ')} `)).toBe(true)
    expect(line.slice(settings.length + 1)).toMatch(bindings)
  })

  it('gives the kernel no console, and keeps lockdown', () => {
    const words = commandLine({ rootHash: 'ab', rootBlocks: 7 }, utf8('{}')).split(' ')
    expect(words.filter((word) => word.startsWith('console='))).toEqual(['console=null'])
    expect(words).toContain('lockdown=confidentiality')
  })
})

describe('the table of what holds', () => {
  it('names tests that are there', () => {
    const project = join(import.meta.dirname, '../..')
    const page = readFileSync(join(project, 'docs/guest.md'), 'utf8')
    const named = [...page.matchAll(/`(test\/[^`]+\.test\.ts)`/g)].map(([, path = '']) => path)
    expect(named.length).toBeGreaterThan(30)
    expect(named.filter((path) => !existsSync(join(project, path)))).toEqual([])
  })
})

describe('the inputs', () => {
  it('are pinned, each package by version and digest', () => {
    const { packages } = readInputs()
    expect(packages.length).toBeGreaterThan(0)
    expect(packages.filter(({ sha256 }) => /^0+$/.test(sha256))).toEqual([])
  })
})

describe('the application in the image', () => {
  it('is the source with its types blanked out, importing files that are there', () => {
    const folder = mkdtempSync(join(tmpdir(), 'cmr-plain-'))
    try {
      writeFileSync(
        join(folder, 'one.ts'),
        "import { two } from './two.ts'\nexport const path: string = 'src/three.ts'\ntwo()\n",
      )
      makePlainScript(folder)
      expect(readdirSync(folder)).toEqual(['one.js'])
      expect(readFileSync(join(folder, 'one.js'), 'utf8')).toBe(
        "import { two } from './two.js'\nexport const path         = 'src/three.js'\ntwo()\n",
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('what the host hands over', () => {
  const config = JSON.stringify({ providers: { nova: { api_key_env: 'NOVA_API_KEY' }, free: {} } })

  it('is taken when its digest is on the command line', () => {
    const line = commandLine({ rootHash: 'ab', rootBlocks: 1 }, utf8(config))
    expect(() => checkConfiguration(utf8(config), `${line}\n`)).not.toThrow()
  })

  it('is refused when it is another configuration, or none or two are bound', async () => {
    const digest = await sha256Hex(config)
    const other = new HostInputError(
      'the configuration is not the one on the measured command line',
    )
    const count = new HostInputError('the command line needs exactly one cmr.config=')
    const check = (line: string) => () => checkConfiguration(utf8(`${config} `), line)
    expect(check(`quiet cmr.config=${digest}`)).toThrow(other)
    expect(check('quiet')).toThrow(count)
    expect(check(`cmr.config=${digest} cmr.config=${digest}`)).toThrow(count)
  })

  it('may hold the secrets that the configuration names, and those of the stack', () => {
    const secrets = { NOVA_API_KEY: 'x', ADMIN_TOKEN: 'y', DATABASE_URL: 'z' }
    expect(readSecrets(JSON.stringify(secrets), config)).toEqual(secrets)
    expect(readSecrets(undefined, config)).toEqual({})
  })

  it('may hold no other variable', () => {
    expect(() => readSecrets('{"NODE_OPTIONS":"--inspect"}', config)).toThrow(
      new HostInputError('the secrets hold a name that the configuration does not ask for'),
    )
    expect(() => readSecrets('{"ADMIN_TOKEN":1}', config)).toThrow(
      new HostInputError('the secrets are not a JSON object of texts'),
    )
  })
})
