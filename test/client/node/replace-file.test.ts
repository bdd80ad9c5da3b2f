import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { replaceFile } from '../../../src/client/node/replace-file.ts'

let directory: string

beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'cmr-replace-'))))
afterEach(() => rmSync(directory, { recursive: true }))

const modeOf = (path: string) => statSync(path).mode & 0o777

describe('a replaced file', () => {
  test('is made with the given mode where there was none', () => {
    const path = join(directory, 'new')
    replaceFile(path, 'text', 0o600)
    expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['text', 0o600])
    expect(readdirSync(directory)).toEqual(['new'])
  })

  test.each([0o600, 0o640, 0o666])('keeps its mode, whatever the umask: %o', (mode) => {
    const path = join(directory, 'old')
    writeFileSync(path, 'before')
    chmodSync(path, mode)
    replaceFile(path, Uint8Array.of(1, 2), 0o644)
    expect([...readFileSync(path)]).toEqual([1, 2])
    expect(modeOf(path)).toBe(mode)
  })

  test('is the one that a link leads to, and the link stays', () => {
    mkdirSync(join(directory, 'elsewhere'))
    writeFileSync(join(directory, 'elsewhere/real'), 'before')
    symlinkSync('elsewhere/real', join(directory, 'link'))
    replaceFile(join(directory, 'link'), 'after', 0o600)
    expect(readlinkSync(join(directory, 'link'))).toBe('elsewhere/real')
    expect(readFileSync(join(directory, 'elsewhere/real'), 'utf8')).toBe('after')
    expect(readdirSync(join(directory, 'elsewhere'))).toEqual(['real'])
  })

  test('leaves no draft behind where it cannot be replaced', () => {
    const path = join(directory, 'folder')
    mkdirSync(path)
    expect(() => replaceFile(path, 'text', 0o600)).toThrow('EISDIR')
    expect(readdirSync(directory)).toEqual(['folder'])
  })
})
