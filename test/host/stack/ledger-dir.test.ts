import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ledgerDir } from '../../../src/host/stack/ledger-dir.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'

let path = ''
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'cmr-test-'))
})
afterEach(() => rmSync(path, { recursive: true, force: true }))

/** As much of a state directory as is asked for here. */
const state = () => ({
  directory: (name: string) => {
    mkdirSync(join(path, name), { recursive: true })
    return join(path, name)
  },
})

describe('the directory of the ledger', () => {
  it('is made in a new state directory', () => {
    expect(ledgerDir(state())).toBe(join(path, 'storage'))
  })

  it('is refused where an earlier version left a ledger that this one would not see', () => {
    mkdirSync(join(path, 'storage', 'cmr-store'), { recursive: true })
    expect(() => ledgerDir(state())).toThrow(StartError)
    expect(() => ledgerDir(state())).toThrow('holds a ledger of an earlier version')
  })
})
