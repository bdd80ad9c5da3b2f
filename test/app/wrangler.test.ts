import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

test('wrangler accepts the configuration and bundles the worker', async () => {
  const outDir = mkdtempSync(join(tmpdir(), 'cmr-wrangler-'))
  const wrangler = join(PROJECT_DIR, 'node_modules/wrangler/bin/wrangler.js')
  const args = [wrangler, 'deploy', '--dry-run', '--outdir', outDir]
  const env = { ...process.env, WRANGLER_SEND_METRICS: 'false' }
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: PROJECT_DIR, env })
  for (const binding of ['STORE', 'POSTGRES', 'DB', 'STORAGE', 'LINK', 'LINK_ORIGIN']) {
    expect(stdout).toContain(`env.${binding} `)
  }
  expect(readdirSync(outDir)).toContain('index.js')
  rmSync(outDir, { recursive: true })
})
