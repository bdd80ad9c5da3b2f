import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'

const packageSchema = z.object({ scripts: z.object({ prestart: z.string() }) })

const REFUSAL = {
  code: 1,
  stdout: '',
  stderr: 'error: the packages of this checkout are not installed: run "npm ci" first\n',
}

let checkout: string

beforeAll(() => {
  checkout = mkdtempSync(join(tmpdir(), 'cmr-checkout-'))
  cpSync(join(PROJECT_DIR, 'src'), join(checkout, 'src'), { recursive: true })
  copyFileSync(join(PROJECT_DIR, 'package.json'), join(checkout, 'package.json'))
})
afterAll(() => rmSync(checkout, { recursive: true }))

const run = (file: string, ...args: string[]) => promisify(execFile)(file, args, { cwd: checkout })

describe('a checkout without its packages', () => {
  test.each(['start', 'serve', 'admin', 'verify'])(
    'says in a line what %s needs',
    async (command) => {
      await expect(run(process.execPath, 'src/cli/main.ts', command)).rejects.toMatchObject(REFUSAL)
    },
  )

  test('says so before npm start builds anything', async () => {
    const text = readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8')
    const { prestart } = packageSchema.parse(JSON.parse(text)).scripts
    await expect(run('/bin/sh', '-c', prestart)).rejects.toMatchObject(REFUSAL)
  })
})
