import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { outputOf } from '../../support/run-program.ts'

const MEASUREMENTS = ['5a'.repeat(48), '5b'.repeat(48)] as const
const COMMIT = 'c0'.repeat(20)
const COMMAND_LINE = 'console=ttyS0 cmr.root=ab <script>'

let directory: string
const at = (name: string) => join(directory, name)

function release(...words: readonly string[]): Promise<string> {
  return outputOf(['release', ...words], { cwd: directory })
}

const refusal = async (...words: readonly string[]) => {
  const failed: unknown = await release(...words).catch((error: unknown) => error)
  const said = failed instanceof Error && 'stderr' in failed ? String(failed.stderr) : ''
  expect(said).toMatch(/^error: /)
  return said.slice('error: '.length).trim()
}

const measured = (measurement: string, vcpus: number) =>
  JSON.stringify({
    measurement,
    vcpus,
    cpu_signature: '0xa10f10',
    guest_features: '0x1',
    firmware_sha256: 'f1'.repeat(32),
    kernel_sha256: 'f2'.repeat(32),
    initrd_sha256: 'f3'.repeat(32),
    command_line: COMMAND_LINE,
  })

const IMAGE = {
  commit: COMMIT,
  kernel_sha256: 'f2'.repeat(32),
  initrd_sha256: 'f3'.repeat(32),
  root_sha256: 'f4'.repeat(32),
  root_hash: 'f5'.repeat(32),
  root_blocks: 7,
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cmr-page-'))
  await Promise.all([
    writeFile(at('template.json'), '{"environment":"staging","tcb_floor":{}}'),
    writeFile(at('worker.js'), 'the worker'),
    writeFile(at('verifier.html'), 'the page'),
    writeFile(at('image.json'), JSON.stringify(IMAGE)),
    writeFile(at('other.json'), JSON.stringify({ ...IMAGE, commit: 'c1'.repeat(20) })),
    writeFile(at('two.json'), measured(MEASUREMENTS[0], 2)),
    writeFile(at('eight.json'), measured(MEASUREMENTS[1], 8)),
    writeFile(at('foreign.json'), measured('5c'.repeat(48), 4)),
    release('keygen', '--private', 'root.private.json', '--public', 'root.json'),
    release('keygen', '--private', 'mk.private.json', '--public', 'mk.json'),
    release('log', 'keygen', '--name', 'router.example/releases', '--private', 'log.key'),
  ])
  const files = ['--binary', 'worker.js', '--image', 'image.json', '--verifier', 'verifier.html']
  await release(
    'sign-manifest',
    '--key',
    'mk.private.json',
    '--version',
    '1.2.3',
    ...files,
    '--out',
    'manifest.jws',
  )
  const allow = MEASUREMENTS.flatMap((one) => ['--allow', one])
  const bundle = [
    '--template',
    'template.json',
    '--manifest-key',
    'mk.json',
    '--manifest',
    'manifest.jws',
  ]
  await release(
    'sign-bundle',
    '--root-key',
    'root.private.json',
    ...bundle,
    ...allow,
    '--out',
    'trust.json',
  )
  const log = ['--dir', 'log', '--key', 'log.key', '--attach', 'trust.json']
  await release('log', 'append', 'manifest.jws', ...log, '--out', 'manifest.proof')
  await release('log', 'append', 'trust.json', ...log, '--out', 'trust.proof')
}, 60_000)
afterAll(() => rm(directory, { recursive: true }))

const PAGE = ['page', '--root-key', 'root.json', '--manifest', 'manifest.jws', '--out', 'page.html']
const COMPLETE = ['--measured', 'eight.json', '--measured', 'two.json']

describe('the page of a release', () => {
  it('says what it is, and how to build it again, in both forms', async () => {
    await release(
      ...PAGE,
      '--bundle',
      'trust.json',
      '--image',
      'image.json',
      ...COMPLETE,
      '--markdown',
      'page.md',
    )
    const [html, markdown] = await Promise.all(
      ['page.html', 'page.md'].map((name) => readFile(at(name), 'utf8')),
    )
    for (const page of [html, markdown]) {
      expect(page).toContain('1.2.3')
      expect(page).toContain(COMMIT)
      for (const one of [...MEASUREMENTS, IMAGE.root_hash, IMAGE.kernel_sha256]) {
        expect(page).toContain(one)
      }
      expect(page).toContain('router.example/releases')
      expect(page).toContain('npm run image')
    }
    expect(markdown).toMatch(new RegExp(`\\| 2 \\| 0xa10f10 \\| ${MEASUREMENTS[0]} \\|\\n\\| 8 `))
    expect(markdown).toContain('| the trust bundle | router.example/releases | 1 | 2 |')
  })

  it('loads nothing, and shows what it is given as text', async () => {
    const html = await readFile(at('page.html'), 'utf8')
    expect(html).toContain("default-src 'none'")
    expect(html).toContain('cmr.root=ab &lt;script&gt;')
    expect(html).not.toMatch(/<script|<img|<link|src=|href=/)
  })

  it.each<[string, readonly string[], string]>([
    [
      'another image than the manifest is for',
      ['--bundle', 'trust.json', '--image', 'other.json', ...COMPLETE],
      'the manifest is for another image',
    ],
    [
      'a measurement that the bundle does not allow',
      [
        '--bundle',
        'trust.json',
        '--image',
        'image.json',
        ...COMPLETE,
        '--measured',
        'foreign.json',
      ],
      `the bundle does not allow ${'5c'.repeat(48)} for this release`,
    ],
    [
      'an allowed measurement that nothing explains',
      ['--bundle', 'trust.json', '--image', 'image.json', '--measured', 'two.json'],
      `nothing says which guest has ${MEASUREMENTS[1]}: give its --measured file`,
    ],
  ])('is not written for %s', async (_what, words, reason) => {
    expect(await refusal(...PAGE, ...words)).toBe(reason)
  })

  it('is not written with the log proof of another document', async () => {
    const published = JSON.parse(await readFile(at('trust.json'), 'utf8'))
    const { manifest, trust_bundle: bundle } = published.log_proofs
    const swapped = { ...published, log_proofs: { manifest: bundle, trust_bundle: manifest } }
    await writeFile(at('swapped.json'), JSON.stringify(swapped))
    const words = ['--bundle', 'swapped.json', '--image', 'image.json', ...COMPLETE]
    expect(await refusal(...PAGE, ...words)).toMatch(/^the log proof is of another document than/)
  })
})
