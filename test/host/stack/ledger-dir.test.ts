import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  EMBEDDED_LEDGERS,
  LEDGER_MARK,
  ledgerDir,
  markLedger,
  refuseDamage,
} from '../../../src/host/stack/ledger-dir.ts'
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
  write: (name: string, text: string) => writeFileSync(join(path, name), text),
})

describe('the directory of the ledger', () => {
  it('is made in a new state directory', () => {
    expect(ledgerDir(state(), 'durable-object')).toBe(join(path, 'storage'))
  })

  it('is refused where an earlier version left a ledger that this one would not see', () => {
    mkdirSync(join(path, 'storage', 'cmr-store'), { recursive: true })
    expect(() => ledgerDir(state(), 'durable-object')).toThrow(StartError)
    expect(() => ledgerDir(state(), 'durable-object')).toThrow(
      'holds a ledger of an earlier version',
    )
  })

  it.each(['durable-object', 'sqlite'] as const)(
    'is refused to STORAGE=%s by name where the ledger is that of the other embedded engine',
    (engine) => {
      const other = engine === 'sqlite' ? 'durable-object' : 'sqlite'
      const file = join(path, 'storage', EMBEDDED_LEDGERS[other])
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, '')
      expect(() => ledgerDir(state(), engine)).toThrow(StartError)
      expect(() => ledgerDir(state(), engine)).toThrow(
        `${file} is the ledger of STORAGE=${other}, and this start is for STORAGE=${engine}: ` +
          `set STORAGE=${other}${other === 'sqlite' ? '' : ', with one worker'}, or move it with ` +
          `"npm run serve -- move-ledger --to ${engine} --state-dir ${path}"`,
      )
      expect(ledgerDir(state(), other)).toBe(join(path, 'storage'))
      expect(ledgerDir(state(), 'postgres')).toBe(join(path, 'storage'))
    },
  )

  describe.each(['durable-object', 'sqlite'] as const)('of STORAGE=%s', (engine) => {
    const file = () => join(path, 'storage', EMBEDDED_LEDGERS[engine])
    const make = (text: string) => {
      mkdirSync(dirname(file()), { recursive: true })
      writeFileSync(file(), text)
    }

    it.each(['removed', 'emptied'])(
      'is refused by name where the ledger that a router has served from is %s',
      (what) => {
        make('rows')
        markLedger(state(), engine)
        expect(ledgerDir(state(), engine)).toBe(join(path, 'storage'))
        if (what === 'removed') rmSync(file())
        else make('')
        expect(() => ledgerDir(state(), engine)).toThrow(StartError)
        expect(() => ledgerDir(state(), engine)).toThrow(
          `${file()}, the ledger, is missing, and a router has served from it: put it back, or restore a backup; ` +
            `to begin with an empty ledger, remove ${join(path, LEDGER_MARK)}`,
        )
        expect(ledgerDir(state(), 'postgres')).toBe(join(path, 'storage'))
      },
    )

    it('is not called missing where it cannot be looked at, as in a directory of another account', () => {
      make('rows')
      markLedger(state(), engine)
      rmSync(file())
      symlinkSync(file(), file())
      expect(() => ledgerDir(state(), engine)).toThrow(StartError)
      expect(() => ledgerDir(state(), engine)).toThrow(
        `${file()}, the ledger, cannot be looked at: have the files below ${join(path, 'storage')} belong to the account of the router`,
      )
      rmSync(join(path, LEDGER_MARK))
      expect(ledgerDir(state(), engine)).toBe(join(path, 'storage'))
    })

    it('begins anew where a first start did not get as far as to serve, and once the mark is removed', () => {
      make('')
      expect(ledgerDir(state(), engine)).toBe(join(path, 'storage'))
      markLedger(state(), engine)
      expect(existsSync(join(path, LEDGER_MARK))).toBe(false)
      make('rows')
      markLedger(state(), engine)
      rmSync(file())
      rmSync(join(path, LEDGER_MARK))
      expect(ledgerDir(state(), engine)).toBe(join(path, 'storage'))
    })

    it('is there after a move from the other engine', () => {
      make('rows')
      markLedger(state(), engine)
      const other = engine === 'sqlite' ? 'durable-object' : 'sqlite'
      const moved = join(path, 'storage', EMBEDDED_LEDGERS[other])
      mkdirSync(dirname(moved), { recursive: true })
      renameSync(file(), moved)
      expect(ledgerDir(state(), other)).toBe(join(path, 'storage'))
    })
  })

  it('has no mark of a router whose ledger is elsewhere', () => {
    markLedger(state(), 'postgres')
    expect(existsSync(join(path, LEDGER_MARK))).toBe(false)
  })
})

describe('a damaged file below the directory of the ledger', () => {
  const damaged = (file: string) => {
    mkdirSync(dirname(join(path, 'storage', file)), { recursive: true })
    writeFileSync(join(path, 'storage', file), 'x'.repeat(8_192))
  }

  it.each(['cmr-ledger', 'cmr-chunks', 'cmr-postgres-pool'])(
    'is refused by name where it is that of the alarms of %s, without which workerd ends',
    (namespace) => {
      damaged(`${namespace}/metadata.sqlite`)
      expect(() => refuseDamage(state(), 'durable-object')).toThrow(StartError)
      expect(() => refuseDamage(state(), 'durable-object')).toThrow(
        `${join(path, 'storage', namespace, 'metadata.sqlite')}, which has the times of maintenance, ` +
          'is damaged (file is not a database): remove it, and a new one is made',
      )
    },
  )

  it('is no matter where the engine does not use it', () => {
    damaged('cmr-chunks/metadata.sqlite')
    expect(() => refuseDamage(state(), 'sqlite')).not.toThrow()
    expect(() => refuseDamage(state(), 'postgres')).not.toThrow()
  })
})
