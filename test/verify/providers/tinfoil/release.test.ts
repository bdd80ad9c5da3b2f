import { describe, expect, it } from 'vitest'
import { providerPolicySchema } from '../../../../src/protocol/provider-policy.ts'
import type { BuildRecord, VerifyProvenance } from '../../../../src/verify/providers/provenance.ts'
import {
  requireRelease,
  type Measured,
  type PublishedRecords,
} from '../../../../src/verify/providers/tinfoil/release.ts'

const LAUNCH = '5d'.repeat(48)
const [MRTD = '', RTMR0 = '', RTMR1 = '', RTMR2 = ''] = ['21', '22', '23', '24'].map((byte) =>
  byte.repeat(48),
)
const CODE = { repository: 'vega/enclave', workflow: '.github/workflows/release.yml' }
const PLATFORM = { repository: 'vega/machines', workflow: '.github/workflows/build.yml' }
const PREDICATE = 'https://tinfoil.sh/predicate/'
const DIGEST = 'd1'.repeat(32)

const built = { snp_measurement: LAUNCH, tdx_measurement: { rtmr1: RTMR1, rtmr2: RTMR2 } }
const machines = {
  small: { mrtd: 'ff'.repeat(48), rtmr0: RTMR0 },
  large: { mrtd: MRTD, rtmr0: RTMR0 },
}

const code = { predicateType: `${PREDICATE}snp-tdx-multiplatform/v1`, predicate: built }
const platform = {
  predicateType: `${PREDICATE}platform-endorsements/v1`,
  predicate: { format: 'x', measurements: machines, machines: {}, policies: {} },
}

type Stated = Partial<Pick<BuildRecord, 'predicateType' | 'predicate' | 'subjectSha256'>>

/** Every record is validly signed by the requested signer, and says this. */
const saying =
  (records: Readonly<Record<string, Stated>>): VerifyProvenance =>
  (bundle, { repository }) => ({
    predicateType: '',
    predicate: {},
    subjectSha256: DIGEST,
    release: { repository, tag: 'v1', commit: 'c0', logged_at: 'then', log_index: '7' },
    ...records[bundle],
  })

const published = (bundle: string) => ({ digest: DIGEST, bundle })
const SNP: Measured = { platform: 'snp', measurement: LAUNCH }
const TDX: Measured = { platform: 'tdx', registers: [MRTD, RTMR0, RTMR1, RTMR2] }

interface Given {
  readonly measured?: Measured
  readonly records?: PublishedRecords
  readonly says?: Readonly<Record<string, Stated>>
  readonly policy?: Record<string, unknown>
  readonly verifyProvenance?: VerifyProvenance | undefined
}

function demand(given: Given = {}) {
  const policy = providerPolicySchema.parse({
    adapter: 'tinfoil',
    provenance: { ...CODE, platform: PLATFORM },
    ...given.policy,
  })
  if (policy.adapter !== 'tinfoil') throw new Error('another adapter')
  const records = given.records ?? { code: published('code'), platform: published('platform') }
  const verifyProvenance = saying({ code, platform, ...given.says })
  return requireRelease(given.measured ?? SNP, records, policy, {
    now: 0,
    verifyProvenance,
    ...('verifyProvenance' in given && { verifyProvenance: given.verifyProvenance }),
  })
}

const release = (repository: string) => ({
  repository,
  tag: 'v1',
  commit: 'c0',
  logged_at: 'then',
  log_index: '7',
})
const refusal = (check: string) =>
  `the public record of the release's build does not hold (${check})`

describe('a release by its build record', () => {
  it('is named where the launch digest is the one it built', () => {
    expect(demand()).toEqual({ release: release('vega/enclave') })
  })

  it('is named with the machine on TDX', () => {
    const both = { release: release('vega/enclave'), platform_release: release('vega/machines') }
    expect(demand({ measured: TDX })).toEqual(both)
    const older = { predicateType: `${PREDICATE}hardware-measurements/v1`, predicate: machines }
    expect(demand({ measured: TDX, says: { platform: older } })).toEqual(both)
  })

  it.each<[string, Given, string]>([
    ['without a record', { records: {} }, 'record_missing'],
    ['where nothing can verify one', { verifyProvenance: undefined }, 'no_verifier'],
    [
      'with the record of another artefact than it was published for',
      { says: { code: { ...code, subjectSha256: 'ab'.repeat(32) } } },
      'record_subject',
    ],
    [
      'with a record of something else',
      { says: { code: { ...code, predicateType: 'https://slsa.dev/provenance/v1' } } },
      'record_predicate',
    ],
    [
      'with a record that names no measurement',
      { says: { code: { ...code, predicate: {} } } },
      'record_predicate',
    ],
    [
      'of another launch digest',
      { measured: { platform: 'snp', measurement: '00'.repeat(48) } },
      'record_measurement',
    ],
    [
      'of another kernel on TDX',
      { measured: { platform: 'tdx', registers: [MRTD, RTMR0, '00'.repeat(48), RTMR2] } },
      'record_measurement',
    ],
    [
      'of another command line on TDX',
      { measured: { platform: 'tdx', registers: [MRTD, RTMR0, RTMR1, '00'.repeat(48)] } },
      'record_measurement',
    ],
    [
      'on TDX where nobody is trusted for machines',
      { measured: TDX, policy: { provenance: CODE } },
      'platform_identity',
    ],
    [
      'on TDX without a record of machines',
      { measured: TDX, records: { code: published('code') } },
      'record_missing',
    ],
    [
      'on TDX firmware that no machine has',
      { measured: { platform: 'tdx', registers: ['00'.repeat(48), RTMR0, RTMR1, RTMR2] } },
      'platform_measurement',
    ],
    [
      'on TDX with the firmware of one machine and the hardware of another',
      { measured: { platform: 'tdx', registers: [MRTD, '00'.repeat(48), RTMR1, RTMR2] } },
      'platform_measurement',
    ],
    [
      'on TDX with a record of machines that is one of code',
      { measured: TDX, says: { platform: code } },
      'record_predicate',
    ],
  ])('%s is refused by name', (_what, given, check) => {
    expect(() => demand(given)).toThrow(refusal(check))
  })

  it('takes exactly one of measurements and provenance', () => {
    const parse = (members: object) =>
      providerPolicySchema.safeParse({ adapter: 'tinfoil', ...members }).success
    expect(parse({})).toBe(false)
    expect(parse({ provenance: CODE, allowed_measurements: [LAUNCH] })).toBe(false)
    expect(parse({ provenance: { ...CODE, workflow: 'release.yml' } })).toBe(false)
    expect(parse({ provenance: { ...CODE, repository: 'enclave' } })).toBe(false)
    expect(parse({ provenance: CODE })).toBe(true)
  })
})
