import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

const run = promisify(execFile)

const { scripts }: { scripts: Record<string, string> } = JSON.parse(
  readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8'),
)

describe('--help', () => {
  test.each(['dev', 'faults', 'bench', 'load', 'soak', 'fuzz', 'image', 'start', 'serve'])(
    'of npm run %s prints help and does nothing else',
    { timeout: 60_000 },
    async (name) => {
      const [file = '', ...more] = (scripts[name] ?? '').replace(/^(exec )?node /, '').split(' ')
      const directory = mkdtempSync(join(tmpdir(), 'cmr-help-'))
      try {
        const args = [join(PROJECT_DIR, file), ...more, '--help']
        const { stdout } = await run(process.execPath, args, { cwd: directory, timeout: 50_000 })
        expect(stdout).toMatch(/^Usage: /)
        expect(readdirSync(directory)).toEqual([])
      } finally {
        rmSync(directory, { recursive: true, force: true })
      }
    },
  )
})

test('npm run dev leaves nothing that git would see', async () => {
  for (const path of ['.state-dev/wrangler/x', '.wrangler/x']) {
    const { stdout } = await run('git', ['check-ignore', path], { cwd: PROJECT_DIR })
    expect(stdout.trim()).toBe(path)
  }
})
