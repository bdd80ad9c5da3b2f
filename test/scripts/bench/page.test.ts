import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BATCHERS } from '../../../scripts/bench/batchers.ts'
import { COMPARISON } from '../../../scripts/bench/comparison.ts'
import { GROWTH } from '../../../scripts/bench/growth.ts'
import { figuresOf, showReport, withBlock } from '../../../scripts/bench/page.ts'
import { WORKERS } from '../../../scripts/bench/workers.ts'
import { PROJECT_DIR } from '../../../src/host/stack/settings.ts'
import { report, system, windowWith } from './reports.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cmr-test-page-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

const streams = {
  'streams-64': [windowWith({ framesPerSecond: 3_200, gapP99Ms: 25 })],
  'streams-512': [windowWith({ framesPerSecond: 25_000, gapP99Ms: 118 })],
}

const MEASURED = report(
  ['direct', 'floor', 'router', 'router-pinned', 'embeddings'].map((name) => ({
    ...system(name, {}),
    windows: { ...system(name, {}).windows, ...streams },
  })),
)

describe('the page of the benchmark', () => {
  it('gets the figures between its marks; everything else stays', () => {
    const page = 'Before\n\n<!-- bench:a -->\nold\n<!-- /bench:a -->\n\nAfter\n'
    expect(withBlock(page, 'a', 'new')).toBe(
      'Before\n\n<!-- bench:a -->\n\nnew\n\n<!-- /bench:a -->\n\nAfter\n',
    )
  })

  it('is refused without a place for them', () => {
    expect(() => withBlock('no marks', 'a', 'new')).toThrow('the page has no <!-- bench:a -->')
    expect(() => withBlock('<!-- bench:a -->', 'a', 'new')).toThrow('<!-- /bench:a -->')
  })

  it.each([COMPARISON, GROWTH, WORKERS, BATCHERS])(
    'has a place for the report "$name"',
    ({ name }) => {
      const page = readFileSync(join(PROJECT_DIR, 'docs/performance.md'), 'utf8')
      expect(withBlock(page, name, 'new')).toContain(`<!-- bench:${name} -->\n\nnew\n\n`)
    },
  )

  it('says when, where and how the figures were taken', () => {
    expect(figuresOf(MEASURED, [])).toBe(
      'Taken on 2026-11-20 22:00 UTC with `npm run bench` on 2 cores (one); load 0.0 before and 0.0 after.',
    )
  })

  it('has the plots of a comparison, drawn into the folder beside it', async () => {
    const out = join(folder, 'performance')
    mkdirSync(out)
    writeFileSync(`${out}.md`, '<!-- bench:bench -->\n<!-- /bench:bench -->\n')
    await showReport(COMPARISON, MEASURED, out)
    const page = readFileSync(`${out}.md`, 'utf8')
    const images = [...page.matchAll(/!\[[^\]]+\]\(performance\/([a-z-]+)\.svg\)/g)]
    const names = images.map(([, name]) => name ?? '')
    expect(names).toEqual(Object.keys(COMPARISON.plots(MEASURED)))
    for (const name of names) {
      expect(readFileSync(join(out, `${name}.svg`), 'utf8')).toMatch(/^<svg .*<\/svg>\n$/s)
    }
    expect(readFileSync(join(out, 'frames.svg'), 'utf8')).toContain('router-pinned')
    expect(readFileSync(join(out, 'targets.svg'), 'utf8')).toContain('CPU per request at 64')
  })

  it('has no page to write where the folder has none', async () => {
    await showReport(GROWTH, report([]), folder)
    expect(readFileSync(join(folder, 'growth.svg'), 'utf8')).toContain('<svg')
  })
})
