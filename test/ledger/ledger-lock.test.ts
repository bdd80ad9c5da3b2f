import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lockLedger } from '../../src/ledger/ledger-lock.ts'

let directory: string
let ledger: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-ledger-lock-'))
  ledger = join(directory, 'ledger.sqlite')
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('the lock of a ledger', () => {
  it('is for one at a time', () => {
    const unlock = lockLedger(ledger)
    expect(() => lockLedger(ledger)).toThrow(`another process writes the ledger ${ledger}`)
    unlock()
    lockLedger(ledger)()
  })

  it('that cannot be used is not taken for that of another process', () => {
    writeFileSync(`${ledger}.lock`, 'no database'.repeat(100))
    expect(() => lockLedger(ledger)).toThrow(`cannot lock ${ledger}.lock: file is not a database`)
  })
})
