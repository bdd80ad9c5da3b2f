import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LedgerPositions, PositionNotStored } from '../../../src/cli/unseal/ledger-positions.ts'

let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-positions-'))
  path = join(directory, 'positions.json')
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('the ledger positions of a broker', () => {
  test('are stored, and only grow', async () => {
    const positions = await LedgerPositions.open(path)
    expect(await positions.note('guest', 7)).toBeUndefined()
    expect(await positions.note('guest', 5)).toBe(7)
    expect((await LedgerPositions.open(path)).of('guest')).toBe(7)
  })

  test('that cannot be stored are said to be so, and are stored once that is possible, although none has changed since', async () => {
    const positions = await LedgerPositions.open(path)
    // A folder cannot be replaced by a file.
    mkdirSync(path)
    const noted = positions.note('guest', 7)
    await expect(noted).rejects.toThrow(PositionNotStored)
    await expect(noted).rejects.toThrow(`its ledger position cannot be stored in ${path}: EISDIR`)
    // The same position again is told again, and a ledger that is put back is noticed all the same.
    await expect(positions.note('guest', 7)).rejects.toThrow(PositionNotStored)
    expect(await positions.note('guest', 6)).toBe(7)
    rmSync(path, { recursive: true })
    expect(await positions.note('guest', 7)).toBeUndefined()
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ guest: 7 })
  })
})
