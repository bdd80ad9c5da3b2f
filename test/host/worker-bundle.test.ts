import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bundleWorker } from '../../src/host/bundle-worker.ts'
import { BUNDLE_FILE_VARIABLE, writeWorkerBundle } from '../../src/host/worker-bundle.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-bundle-'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true })
})

const at = (name: string) => join(directory, name)

test('the worker of a checkout is built from the sources', async () => {
  vi.stubEnv(BUNDLE_FILE_VARIABLE, undefined)
  await bundleWorker(at('built.js'))
  await writeWorkerBundle(at('written.js'))
  expect(readFileSync(at('written.js'))).toEqual(readFileSync(at('built.js')))
})

test('one that was built before is taken where the environment names it', async () => {
  writeFileSync(at('before.js'), 'export default {}')
  vi.stubEnv(BUNDLE_FILE_VARIABLE, at('before.js'))
  await writeWorkerBundle(at('written.js'))
  expect(readFileSync(at('written.js'), 'utf8')).toBe('export default {}')
})

test('one that is named and not there is an error', async () => {
  vi.stubEnv(BUNDLE_FILE_VARIABLE, at('none.js'))
  await expect(writeWorkerBundle(at('written.js'))).rejects.toThrow('ENOENT')
})
