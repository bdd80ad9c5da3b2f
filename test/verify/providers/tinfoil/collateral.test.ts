import { describe, expect, test } from 'vitest'
import { readTinfoilCollateral } from '../../../../src/verify/providers/tinfoil/collateral.ts'

const entry = (id: string, format: string) => ({
  id,
  role: 'endorsement' as const,
  format: `https://tinfoil.sh/collateral/${format}`,
  data: { crl_der_base64: 'AAAA' },
})

describe('the collateral of a Tinfoil enclave', () => {
  test('may have entries of formats that nobody reads', () => {
    const entries = [entry('a', 'amd-crl/v1'), entry('b', 'other/v1'), entry('c', 'other/v1')]
    expect(readTinfoilCollateral(entries)).toHaveProperty('snpRevocationList')
  })

  test('is refused with one id for two entries, whatever their formats', () => {
    const entries = [entry('a', 'amd-crl/v1'), entry('a', 'other/v1')]
    expect(() => readTinfoilCollateral(entries)).toThrow(
      'malformed Tinfoil collateral: an id given twice',
    )
  })

  test('is refused with two entries of a format that is read', () => {
    const entries = [entry('a', 'amd-crl/v1'), entry('b', 'amd-crl/v1')]
    expect(() => readTinfoilCollateral(entries)).toThrow(
      'malformed Tinfoil collateral: a format given twice',
    )
  })
})
