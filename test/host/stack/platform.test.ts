import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { choosePlatform, hasReportInterface } from '../../../src/host/stack/platform.ts'

describe('the source of reports', () => {
  it('is there where the kernel takes an entry, which is removed again', () => {
    const root = mkdtempSync(join(tmpdir(), 'cmr-tsm-'))
    try {
      expect(hasReportInterface(root)).toBe(true)
      expect(readdirSync(root)).toEqual([])
      expect(hasReportInterface(join(root, 'absent'))).toBe(false)
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  it('is never simulated where there is a real one, or where that is not allowed', () => {
    expect(choosePlatform(true, true)).toBe('configfs-tsm')
    expect(choosePlatform(false, false)).toBe('configfs-tsm')
    expect(choosePlatform(true, false)).toBe('simulated')
  })
})
