import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { withFileLock } from '../../../src/client/node/file-lock.ts'

describe('the lock of a file', () => {
  let folder = ''
  let path = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'file-lock-'))
    path = join(folder, 'state.json')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('is there while the work is done, and gone afterwards, also when the work fails', async () => {
    const done = await withFileLock(path, async (isHeld) => {
      expect(existsSync(`${path}.lock`)).toBe(true)
      return isHeld()
    })
    expect(done).toBe(true)
    const failed = withFileLock(path, () => Promise.reject(new Error('no space')))
    await expect(failed).rejects.toThrow('no space')
    expect(readdirSync(folder)).toEqual([])
  })

  it('that another program has taken meanwhile is told to be lost, and stays', async () => {
    const held = await withFileLock(path, (isHeld) => {
      rmSync(`${path}.lock`)
      writeFileSync(`${path}.lock`, 'of another program')
      return isHeld()
    })
    expect(held).toBe(false)
    expect(readdirSync(folder)).toEqual(['state.json.lock'])
  })

  it('that was left over is removed, and nothing is left beside it', async () => {
    writeFileSync(`${path}.lock`, '')
    expect(await withFileLock(path, (isHeld) => isHeld())).toBe(true)
    expect(readdirSync(folder)).toEqual([])
  }, 30_000)
})
