import { describe, expect, test } from 'vitest'
import { readCertificate } from '../../src/verify/x509/certificate.ts'
import { parseCompactJws } from '../../src/protocol/compact-jws.ts'
import { headerFault } from '../../src/verify/jws.ts'
import { STANDALONE_POLICY, type SnpPolicy } from '../../src/verify/snp/policy.ts'
import { readVekExtensions } from '../../src/verify/snp/vek-extensions.ts'
import { verifySnp } from '../../src/verify/snp/verify-snp.ts'
import { realChain, realFile, realHex, realText } from '../support/real-evidence.ts'
import { failures } from '../support/verdicts.ts'

const TODAY = '2026-11-20T12:00:00Z'

async function judge(
  report: ReturnType<typeof realFile>,
  chain: string,
  { now = TODAY, policy = {} }: { now?: string; policy?: Partial<SnpPolicy> } = {},
): Promise<string[]> {
  const result = await verifySnp(report, chain, {
    now: Date.parse(now),
    policy: { ...STANDALONE_POLICY, ...policy },
  })
  return failures(result)
}

const version2 = { policy: { minReportVersion: 2 } }

describe('reports of real machines', () => {
  test.each(['turin-v5', 'genoa-v5'])('%s is valid', async (name) => {
    const chain = realText(`snp/${name}.chain.pem`)
    expect(await judge(realFile(`snp/${name}.report.bin`), chain)).toEqual([])
  })

  test('milan-v2 is valid, but not for a policy that wants version 3', async () => {
    const report = realHex('snp/milan-v2.report.hex')
    const chain = realChain('snp/milan-v2.vcek.der', 'milan')
    expect(await judge(report, chain, version2)).toEqual([])
    expect(await judge(report, chain)).toEqual(['report_version: version 2 is below 3'])
  })

  test('milan-v2-debug is genuine and refused for debugging alone', async () => {
    const report = realFile('snp/milan-v2-debug.report.bin')
    const chain = realChain('snp/milan-v2-debug.vcek.der', 'milan')
    expect(await judge(report, chain, version2)).toEqual([
      'debug_disabled: policy 0xb0000 allows debugging',
    ])
  })

  test('milan-v3-vlek is valid at privilege level 1 in June 2025, and expired today', async () => {
    const report = realFile('snp/milan-v3-vlek.report.bin')
    const chain = realChain('snp/milan-v3-vlek.vlek.der', 'milan', 'vlek')
    const policy = { allowedVmpl: [1], allowedVlekCspIds: ['CN=cc-us-east-2.amazonaws.com'] }
    const now = '2025-06-01T00:00:00Z'
    expect(await judge(report, chain, { now, policy })).toEqual([])
    expect(await judge(report, chain, { now })).toEqual(['vmpl: privilege level 1 is not allowed'])
    expect((await judge(report, chain, { policy }))[0]).toMatch(/^certificate_validity: .* expired/)
    const strict = { ...policy, allowProvisionalFirmware: false }
    expect(await judge(report, chain, { now, policy: strict })).toEqual([
      expect.stringMatching(/^firmware_committed: .* runs without being committed$/),
    ])
  })

  test('other-chip has a valid chain of another chip', async () => {
    const report = realFile('snp/other-chip.report.bin')
    expect(await judge(report, realText('snp/other-chip.chain.pem'), version2)).toEqual([
      'report_signature: the signature does not verify',
      'chip_id: the certificate is of another chip',
    ])
  })

  test('a chip id in an OCTET STRING parses, and its chain is refused', async () => {
    const leaf = 'snp/vcek-invalid-octet-string-hwid.der'
    const claims = readVekExtensions(readCertificate(realFile(leaf)), 'milan', 'vcek')
    expect(claims.hwid).toHaveLength(64)
    const report = realHex('snp/milan-v2.report.hex')
    const failed = await judge(report, realChain(leaf, 'milan'), version2)
    expect(failed[0]).toBe('vek_signature: the signature does not verify')
  })

  test('the certificates of one product vouch for no other', async () => {
    const report = realFile('snp/turin-v5.report.bin')
    const failed = await judge(report, realText('snp/genoa-v5.chain.pem'))
    expect(failed.map((line) => line.split(':')[0])).toEqual([
      'report_signature',
      'product',
      'chip_id',
      'reported_tcb',
      'tcb_order',
    ])
  })

  test('the clock decides: the same evidence fails before its certificates and after', async () => {
    const chain = realText('snp/turin-v5.chain.pem')
    const report = realFile('snp/turin-v5.report.bin')
    for (const now of ['2020-01-01T00:00:00Z', '2040-01-01T00:00:00Z']) {
      const failed = await judge(report, chain, { now })
      expect(failed).toEqual([expect.stringMatching(/^certificate_validity: /)])
    }
  })
})

describe('tokens of real verifiers', () => {
  test('a token whose algorithm is none is refused by its header', () => {
    const text = realText('gpu/h100-local-verifier-alg-none.json')
    const token = /eyJ[\w-]+\.[\w-]+\.[\w-]*/.exec(text)?.[0]
    const jws = parseCompactJws(token ?? '', 'GPU token')
    expect(jws.header.alg).toBe('none')
    expect(headerFault(jws, [jws.header.typ])).toBe('alg is none instead of ES256')
  })
})
