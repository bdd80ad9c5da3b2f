import { assert, property, uint8Array } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromHex, utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import { readCertificateTable } from '../../../src/enclave/snp/certificate-table.ts'
import { encodeCertificateTable, GUID, MIXED_GUID } from './encode-certificate-table.ts'

function message(blob: Bytes): string {
  try {
    readCertificateTable(blob)
  } catch (error) {
    if (error instanceof CaptureError && error.fault === 'bad_certificates') return error.message
    throw error
  }
  throw new Error('not refused')
}

describe('readCertificateTable', () => {
  it.each([
    ['RFC 4122', GUID],
    ['mixed', MIXED_GUID],
  ])('reads entries with GUIDs in %s byte order', (_order, guid) => {
    const blob = encodeCertificateTable([
      [guid.vcek, utf8('v')],
      [guid.ask, utf8('askk')],
      [guid.ark, utf8('ark')],
      [guid.crl, utf8('crl')],
    ])
    expect(readCertificateTable(blob)).toEqual({
      vcek: utf8('v'),
      ask: utf8('askk'),
      ark: utf8('ark'),
      crl: utf8('crl'),
    })
  })

  it('takes an empty blob and an empty table as no certificates', () => {
    expect(readCertificateTable(new Uint8Array())).toEqual({})
    expect(readCertificateTable(new Uint8Array(24))).toEqual({})
  })

  it('skips entries it does not know, and empty ones', () => {
    const blob = encodeCertificateTable([
      [fromHex('00'.repeat(15) + '01'), utf8('?')],
      [GUID.vlek, new Uint8Array()],
    ])
    expect(readCertificateTable(blob)).toEqual({})
  })

  it.each([
    [
      'an entry twice',
      [
        [GUID.ask, utf8('a')],
        [GUID.ask, utf8('b')],
      ],
      'ask given twice',
    ],
  ] as const)('refuses %s', (_what, entries, detail) => {
    expect(message(encodeCertificateTable(entries))).toBe(
      `the certificate table is malformed (${detail})`,
    )
  })

  it.each([
    ['inside the header', 24, 1],
    ['beyond the end', 48, 2],
    ['at an offset beyond 32 bits when added up', 0xffff_ffff, 0xffff_ffff],
  ])('refuses an entry %s', (_where, offset, length) => {
    const blob = encodeCertificateTable([[GUID.vcek, utf8('v')]])
    const view = new DataView(blob.buffer)
    view.setUint32(16, offset, true)
    view.setUint32(20, length, true)
    expect(message(blob)).toBe(
      'the certificate table is malformed (an entry lies outside the table)',
    )
  })

  it('refuses a table without an end', () => {
    expect(message(new Uint8Array(47).fill(1))).toBe(
      'the certificate table is malformed (the table has no end)',
    )
  })

  it('answers any bytes with a table or a named refusal', () => {
    expect(() => assert(property(uint8Array({ maxLength: 400 }), isNamed))).not.toThrow()
  })
})

function outcome(bytes: Bytes): unknown {
  try {
    return readCertificateTable(bytes)
  } catch (error) {
    return error
  }
}

function isNamed(bytes: Bytes): boolean {
  const result = outcome(bytes)
  return !(result instanceof Error) || result instanceof CaptureError
}
