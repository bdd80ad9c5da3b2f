import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { writeDocument } from '../../../src/cli/release/documents.ts'
import { ReleaseError } from '../../../src/cli/release/release-error.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cmr-documents-'))
  path = join(folder, 'document')
})
afterEach(() => rmSync(folder, { recursive: true }))

/** A PEM text of so many bytes, whatever they are. */
function pem(label: string, bytes: number): string {
  const lines = Buffer.alloc(bytes, 7).toString('base64').replaceAll(/.{64}/g, '$&\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}

describe('a public document', () => {
  test.each([
    ['in PEM', pem('PRIVATE KEY', 100)],
    ['of RSA with 16,384 bits', pem('PRIVATE KEY', 12_000)],
    ['of RSA in its own form', pem('RSA PRIVATE KEY', 6_000)],
    ['that is encrypted', pem('ENCRYPTED PRIVATE KEY', 300)],
    ['of OpenSSH', pem('OPENSSH PRIVATE KEY', 300)],
    ['of OpenPGP', pem('PGP PRIVATE KEY BLOCK', 3_000)],
    ['below its certificate', `${pem('CERTIFICATE', 1_000)}${pem('PRIVATE KEY', 100)}`],
    ['below what OpenSSL says of it', `Bag Attributes: <None>\n${pem('PRIVATE KEY', 100)}`],
  ])('never replaces a private key %s', async (_what, key) => {
    writeFileSync(path, key)
    const written = writeDocument(path, 'document')
    await expect(written).rejects.toBeInstanceOf(ReleaseError)
    await expect(written).rejects.toThrow(`${path} holds a private key, and is not replaced`)
    expect(readFileSync(path, 'utf8')).toBe(key)
    expect(readdirSync(folder)).toEqual(['document'])
  })

  test.each([
    ['a certificate', pem('CERTIFICATE', 1_000)],
    ['a public key', pem('PUBLIC KEY', 100)],
    ['a text about private keys', 'The line is -----BEGIN PRIVATE KEY-----\n'],
    ['a large file', 'x'.repeat(100_000)],
  ])('replaces %s', async (_what, text) => {
    writeFileSync(path, text)
    await writeDocument(path, 'document')
    expect(readFileSync(path, 'utf8')).toBe('document')
  })
})
