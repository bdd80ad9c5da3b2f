import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { certificateDirectory } from '../../../src/enclave/snp/certificate-cache.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-certificates-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('a directory of certificates', () => {
  test('has the whole of what one process writes while another one writes the same certificate', async () => {
    const write = (bytes: Uint8Array<ArrayBuffer>) =>
      certificateDirectory(directory).write('a.crl', bytes)
    const read = () => readFileSync(join(directory, 'a.crl'))
    // So large that it takes many writes, which go on when the other process has long ended.
    const large = new Uint8Array(32 << 20).fill(1)
    const small = Uint8Array.of(2, 2, 2)
    const writing = write(large)
    await write(small)
    expect(read().equals(small)).toBe(true)
    await writing
    expect(read().equals(large)).toBe(true)
    expect(readdirSync(directory)).toEqual(['a.crl'])
  })

  test('leaves nothing behind where a certificate cannot be written, and has the others', async () => {
    const files = certificateDirectory(directory)
    await files.write('sub/a.der', Uint8Array.of(1))
    expect(readdirSync(directory)).toEqual([])
    await files.write('b.der', Uint8Array.of(2))
    expect(await files.read('b.der')).toEqual(Uint8Array.of(2))
    expect(await files.read('sub/a.der')).toBeUndefined()
  })

  test('that cannot be made holds nothing, and that is no error', async () => {
    writeFileSync(join(directory, 'file'), '')
    const files = certificateDirectory(join(directory, 'file'))
    await files.write('a.der', Uint8Array.of(1))
    expect(await files.read('a.der')).toBeUndefined()
  })
})
