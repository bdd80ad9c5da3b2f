import { describe, expect, test } from 'vitest'
import { fromBase64, toBase64 } from '../../../src/protocol/bytes.ts'
import { verifySnp } from '../../../src/verify/snp/verify-snp.ts'
import {
  NOW,
  syntheticChain,
  syntheticReport,
  verifySynthetic,
} from '../../support/synthetic-snp.ts'
import { expectMalformed, expectOnly, failures } from '../../support/verdicts.ts'

const REPORT = 'SNP report'

describe('the evidence that every case starts from', () => {
  test.each(['milan', 'genoa', 'turin'] as const)(
    'holds on %s, as VCEK and as VLEK',
    async (product) => {
      expect(failures(await verifySynthetic({ chip: { product } }))).toEqual([])
      expect(failures(await verifySynthetic({ chip: { product, kind: 'vlek' } }))).toEqual([])
    },
  )

  test.each([2, 3, 4, 5])('holds in report version %i', async (version) => {
    const result = await verifySynthetic({ fields: { version }, policy: { minReportVersion: 2 } })
    expect(failures(result)).toEqual([])
  })
})

describe('parsing', () => {
  test('a report of any other length, even one that lost only zeros, is malformed', async () => {
    const chain = await syntheticChain()
    const report = await syntheticReport(chain)
    for (const wrong of [report.slice(0, 1183), new Uint8Array([...report, 0]), new Uint8Array()]) {
      const attempt = () => verifySnp(wrong, chain.pem, { now: NOW })
      await expectMalformed(attempt, REPORT, `${wrong.length} bytes long instead of 1184`)
    }
  })

  test('a version below the policy fails, an unknown one is malformed', async () => {
    expectOnly(
      await verifySynthetic({ fields: { version: 2 } }),
      'report_version',
      'version 2 is below 3',
    )
    for (const version of [0, 1, 6]) {
      const attempt = () => verifySynthetic({ fields: { version } })
      await expectMalformed(attempt, REPORT, `unknown version ${version}`)
    }
  })

  test('another signature algorithm is malformed', async () => {
    for (const signatureAlgorithm of [0, 2]) {
      const attempt = () => verifySynthetic({ fields: { signatureAlgorithm } })
      await expectMalformed(attempt, REPORT, 'not ECDSA P-384 with SHA-384')
    }
  })

  test('reserved bytes that are not zero are malformed', async () => {
    for (const offset of [0x4c, 0x18b, 0x19f, 0x1eb, 0x1ef, 0x208, 0x29f]) {
      const attempt = () =>
        verifySynthetic({ patch: (report) => report.fill(1, offset, offset + 1) })
      await expectMalformed(attempt, REPORT, 'reserved bytes are not zero')
    }
    for (const [version, offset] of [
      [2, 0x188],
      [2, 0x1f8],
      [4, 0x200],
    ] as const) {
      const patch = (report: Uint8Array) => report.fill(1, offset, offset + 1)
      const attempt = () => verifySynthetic({ fields: { version }, patch })
      await expectMalformed(attempt, REPORT, 'reserved bytes are not zero')
    }
  })

  test('bytes around the signature are malformed, a signature out of range does not verify', async () => {
    const chain = await syntheticChain()
    const good = await syntheticReport(chain)
    for (const offset of [0x2d0, 0x2e7, 0x318, 0x32f, 0x330, 0x49f]) {
      const attempt = () => verifySnp(good.with(offset, 1), chain.pem, { now: NOW })
      await expectMalformed(attempt, REPORT, 'reserved bytes are not zero')
    }
    const anchors = [{ product: 'genoa', spkiSha256: chain.arkSpkiSha256 }] as const
    for (const [offset, fill] of [
      [0x2a0, 0],
      [0x2e8, 0],
      [0x2a0, 0xff],
      [0x2e8, 0xff],
    ] as const) {
      const report = good.slice().fill(fill, offset, offset + 48)
      const result = await verifySnp(report, chain.pem, { now: NOW, anchors })
      expectOnly(result, 'report_signature', 'the signature does not verify')
    }
  })

  test('anything but canonical standard base64 of the report is malformed', async () => {
    const text = toBase64(await syntheticReport(await syntheticChain()))
    expect(fromBase64(text)).toHaveLength(1184)
    const urlSafe = text.replace(/[AB]/, '-')
    const wrong = [
      `${text}\n`,
      ` ${text}`,
      urlSafe,
      `${text}AA==`,
      text.replace('=', ''),
      `${text}=`,
    ]
    for (const spelling of wrong) expect(() => fromBase64(spelling)).toThrow(TypeError)
  })
})

describe('guest and platform', () => {
  test('a policy that allows debugging fails', async () => {
    const result = await verifySynthetic({ fields: { policy: 0xb0000 } })
    expectOnly(result, 'debug_disabled', 'policy 0xb0000 allows debugging')
  })

  test('a migration agent fails, allowed or present', async () => {
    const allowed = await verifySynthetic({ fields: { policy: 0x70000 } })
    expectOnly(allowed, 'migration_disabled', 'the policy allows a migration agent')
    for (const reportIdMa of [new Uint8Array(32), new Uint8Array(32).fill(0xff).with(31, 0xfe)]) {
      const present = await verifySynthetic({ fields: { reportIdMa } })
      expectOnly(present, 'migration_disabled', 'the guest has a migration agent')
    }
  })

  test('policy bit 17 must be one', async () => {
    const result = await verifySynthetic({ fields: { policy: 0x10000 } })
    expectOnly(result, 'policy_form', 'bit 17, which must be one, is zero')
  })

  test('reserved policy bits fail', async () => {
    for (const bit of [26n, 40n, 63n]) {
      const result = await verifySynthetic({ fields: { policy: 0x30000n | (1n << bit) } })
      expectOnly(result, 'policy_form', 'reserved bits are set')
    }
  })

  test('a policy ABI below the minimum fails', async () => {
    const policy = { minPolicyAbi: [1, 55] } as const
    for (const abi of [0, 0x01_36, 0x00_ff]) {
      const result = await verifySynthetic({ fields: { policy: 0x30000 + abi }, policy })
      expectOnly(result, 'policy_abi', /^[01]\.\d+ is below 1\.55$/)
    }
    const enough = await verifySynthetic({ fields: { policy: 0x30200 }, policy })
    expect(failures(enough)).toEqual([])
  })

  test('a policy that allows SMT fails where SMT is forbidden', async () => {
    const result = await verifySynthetic({ policy: { allowSmt: false } })
    expectOnly(result, 'smt', 'policy 0x30000 allows SMT')
  })

  test('another privilege level fails, that of the host included', async () => {
    for (const vmpl of [1, 2, 3, 0xffff_ffff]) {
      const result = await verifySynthetic({ fields: { vmpl } })
      expectOnly(result, 'vmpl', `privilege level ${vmpl} is not allowed`)
    }
    const other = await verifySynthetic({ policy: { allowedVmpl: [1] } })
    expectOnly(other, 'vmpl', 'privilege level 0 is not allowed')
  })

  test('a platform without a required protection fails', async () => {
    for (const bit of ['alias_check_complete', 'ciphertext_hiding', 'ecc'] as const) {
      const result = await verifySynthetic({
        fields: { platformInfo: 1 },
        policy: { requiredPlatformInfo: [bit] },
      })
      expectOnly(result, 'platform_info', `lacks ${bit}`)
    }
  })

  test('a guest security version below the floor fails', async () => {
    const result = await verifySynthetic({ fields: { guestSvn: 6 }, policy: { minGuestSvn: 7 } })
    expectOnly(result, 'guest_svn', '6 is below 7')
  })

  test('a mitigation that is missing at launch or now fails', async () => {
    const policy = { requiredMitigationBits: [0, 3] }
    const both = { launchMitigations: 9, currentMitigations: 9 }
    expect(failures(await verifySynthetic({ fields: both, policy }))).toEqual([])
    for (const field of ['launchMitigations', 'currentMitigations'] as const) {
      const result = await verifySynthetic({ fields: { ...both, [field]: 1 }, policy })
      expectOnly(result, 'mitigations', 'lacks bits 3')
    }
  })
})

describe('keys and flags', () => {
  test('a signing key of none or of a reserved kind fails', async () => {
    for (const kind of [2, 6, 7]) {
      const result = await verifySynthetic({ fields: { keyInfo: kind << 2 } })
      expectOnly(result, 'signing_key', /states (none|reserved value \d), not vcek/)
    }
  })

  test('a masked chip key fails', async () => {
    const result = await verifySynthetic({ fields: { keyInfo: 2 } })
    expectOnly(result, 'chip_key_not_masked', 'the chip key is masked')
  })

  test('a report that names the other kind of key fails', async () => {
    const vcek = await verifySynthetic({ fields: { keyInfo: 1 << 2 } })
    expectOnly(vcek, 'signing_key', 'the report states vlek, not vcek')
    const vlek = await verifySynthetic({ chip: { kind: 'vlek' }, fields: { keyInfo: 0 } })
    expectOnly(vlek, 'signing_key', 'the report states vcek, not vlek')
  })

  test('reserved key flags are malformed', async () => {
    for (const bit of [5, 17, 31]) {
      const attempt = () => verifySynthetic({ fields: { keyInfo: 2 ** bit } })
      await expectMalformed(attempt, REPORT, 'reserved bytes are not zero')
    }
  })

  test('a VLEK of a provider that is not accepted fails', async () => {
    for (const allowedVlekCspIds of [[], ['CN=other.example']]) {
      const result = await verifySynthetic({
        chip: { kind: 'vlek' },
        policy: { allowedVlekCspIds },
      })
      expectOnly(result, 'vlek_csp', 'CN=simulated.invalid is not an accepted provider')
    }
  })

  test('an id key or author key outside the list fails', async () => {
    const digest = new Uint8Array(48).fill(0xab)
    const hex = 'ab'.repeat(48)
    const unknownId = await verifySynthetic({ policy: { allowedIdKeyDigests: [hex] } })
    expectOnly(unknownId, 'id_key', 'unknown id key')
    const policy = { allowedAuthorKeyDigests: [hex] }
    const notEnabled = await verifySynthetic({ fields: { authorKeyDigest: digest }, policy })
    expectOnly(notEnabled, 'id_key', 'unknown author key')
    const fields = { authorKeyDigest: digest, keyInfo: 1 }
    expect(failures(await verifySynthetic({ fields, policy }))).toEqual([])
  })
})
