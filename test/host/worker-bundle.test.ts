import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { bundleWorker } from '../../src/host/bundle-worker.ts'
import {
  BUNDLE_FILE_VARIABLE,
  writeLocalWorkerBundle,
  writeWorkerBundle,
} from '../../src/host/worker-bundle.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-bundle-'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true })
})

const at = (name: string) => join(directory, name)

async function expectFromSources(): Promise<void> {
  await bundleWorker(at('built.js'))
  expect(readFileSync(at('written.js'))).toEqual(readFileSync(at('built.js')))
}

test('the worker of a checkout is built from the sources in production, whatever the environment names', async () => {
  writeFileSync(at('before.js'), 'export default {}')
  vi.stubEnv(BUNDLE_FILE_VARIABLE, at('before.js'))
  await writeWorkerBundle(at('written.js'))
  await expectFromSources()
})

describe('for a local stack', () => {
  test('it is built from the sources', async () => {
    vi.stubEnv(BUNDLE_FILE_VARIABLE, undefined)
    await writeLocalWorkerBundle(at('written.js'))
    await expectFromSources()
  })

  test('one that was built before is taken where the environment names it', async () => {
    writeFileSync(at('before.js'), 'export default {}')
    vi.stubEnv(BUNDLE_FILE_VARIABLE, at('before.js'))
    await writeLocalWorkerBundle(at('written.js'))
    expect(readFileSync(at('written.js'), 'utf8')).toBe('export default {}')
  })

  test('one that is named and not there is an error', async () => {
    vi.stubEnv(BUNDLE_FILE_VARIABLE, at('none.js'))
    await expect(writeLocalWorkerBundle(at('written.js'))).rejects.toThrow('ENOENT')
  })
})
