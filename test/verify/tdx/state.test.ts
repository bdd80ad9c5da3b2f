import { describe, expect, it } from 'vitest'
import { providerPolicySchema } from '../../../src/protocol/provider-policy.ts'
import type { VerifiedQuote } from '../../../src/verify/tdx/quote.ts'
import { requireTdxState, type TdxRequirements } from '../../../src/verify/tdx/state.ts'

const register = (fill: number) => new Uint8Array(48).fill(fill)

/** A guest on a platform in good state, started as Linux guests are. */
const GOOD: VerifiedQuote = {
  tcbStatus: 'UpToDate',
  advisoryIds: [],
  tcbEvaluationDataNumber: 17,
  tdxModule: { version: 1, svn: 5, status: 'UpToDate', advisoryIds: [] },
  mrSeam: register(0x5e),
  attributes: Uint8Array.of(0, 0, 0, 0x10, 0, 0, 0, 0),
  xfam: Uint8Array.of(0xe7, 0x02, 0x06, 0, 0, 0, 0, 0),
  mrTd: register(1),
  rtMr: [register(2), register(3), register(4), register(5)],
  mrConfigId: register(0),
  reportData: new Uint8Array(64),
  endsAt: Infinity,
}

function demandsOf(change: Record<string, unknown>): TdxRequirements {
  const policy = providerPolicySchema.parse({
    adapter: 'dstack',
    allowed_compose_hashes: ['ab'.repeat(32)],
    ...change,
  })
  if (policy.adapter !== 'dstack') throw new Error('another adapter')
  return policy
}

const tdx = (members: Record<string, unknown>) => ({ tdx_policy: members })

describe('a TDX guest is accepted', () => {
  it.each<[string, Partial<VerifiedQuote>, Record<string, unknown>]>([
    ['as it is, by a policy that says nothing', {}, {}],
    [
      'with protection keys, key locker and performance counters on',
      { attributes: Uint8Array.of(0, 0, 0, 0xd0, 0, 0, 0, 0x80) },
      {},
    ],
    [
      'in a state that the policy names',
      { tcbStatus: 'SWHardeningNeeded' },
      { tcb_statuses: ['UpToDate', 'SWHardeningNeeded'] },
    ],
    ['under advisories that nobody denied', { advisoryIds: ['INTEL-SA-00837'] }, {}],
    ['of a pinned TDX module', {}, tdx({ allowed_mr_seam: ['5e'.repeat(48)] })],
    [
      'by older collateral, where the policy takes that',
      { tcbEvaluationDataNumber: 16 },
      tdx({ min_tcb_evaluation_data_number: 16 }),
    ],
    [
      'with more processor state, where the policy takes that',
      { xfam: Uint8Array.of(0xff, 0x02, 0x06, 0, 0, 0, 0, 0) },
      tdx({ allowed_xfam: '00000000000602ff' }),
    ],
  ])('%s', (_what, change, policy) => {
    expect(() => requireTdxState({ ...GOOD, ...change }, demandsOf(policy))).not.toThrow()
  })
})

const STATE = 'the platform is in a state the operator does not allow'
const HARDWARE = 'the hardware evidence does not hold'
const DEBUG = 'the guest can be debugged by its host'

describe('a TDX guest is refused', () => {
  it.each<[string, Partial<VerifiedQuote>, Record<string, unknown>, string]>([
    ['out of date', { tcbStatus: 'OutOfDate' }, {}, STATE],
    ...['Revoked', 'Unknown', 'NotSupported'].map(
      (tcbStatus) =>
        [
          `${tcbStatus}, whatever the policy says`,
          { tcbStatus },
          { tcb_statuses: [tcbStatus] },
          STATE,
        ] as [string, Partial<VerifiedQuote>, Record<string, unknown>, string],
    ),
    ['in debug mode', { attributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) }, {}, DEBUG],
    [
      'with another bit for debugging',
      { attributes: Uint8Array.of(0x80, 0, 0, 0x10, 0, 0, 0, 0) },
      {},
      DEBUG,
    ],
    [
      'without SEPT_VE_DISABLE',
      { attributes: new Uint8Array(8) },
      {},
      `${HARDWARE} (td_attributes)`,
    ],
    [
      'with an attribute that nobody knows',
      { attributes: Uint8Array.of(0, 0, 0, 0x10, 1, 0, 0, 0) },
      {},
      `${HARDWARE} (td_attributes)`,
    ],
    [
      'with an attribute that the policy does not take',
      { attributes: Uint8Array.of(0, 0, 0, 0x10, 0, 0, 0, 0x80) },
      tdx({ allowed_td_attributes: '0000000010000000' }),
      `${HARDWARE} (td_attributes)`,
    ],
    [
      'with processor state beyond the mask',
      { xfam: Uint8Array.of(0xff, 0x02, 0x06, 0, 0, 0, 0, 0) },
      {},
      `${HARDWARE} (xfam)`,
    ],
    [
      'without SSE state',
      { xfam: Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0) },
      {},
      `${HARDWARE} (xfam)`,
    ],
    [
      'by collateral from before a recovery',
      { tcbEvaluationDataNumber: 16 },
      {},
      `${STATE} (tcb_evaluation_data_number)`,
    ],
    [
      'under an advisory that the policy denies',
      { advisoryIds: ['INTEL-SA-00837', 'INTEL-SA-01099'] },
      tdx({ denied_advisories: ['INTEL-SA-01099'] }),
      `${STATE} (advisory)`,
    ],
    [
      'of a TDX module that is not pinned',
      {},
      tdx({ allowed_mr_seam: ['00'.repeat(48)] }),
      'the measurement is not one the operator allows (mr_seam)',
    ],
  ])('%s', (_what, change, policy, message) => {
    expect(() => requireTdxState({ ...GOOD, ...change }, demandsOf(policy))).toThrow(message)
  })

  it('by no policy that lets the host debug it, for there is none', () => {
    expect(() => demandsOf(tdx({ allowed_td_attributes: '0000000010000001' }))).toThrow(
      'the lowest byte opens the guest to its host',
    )
  })
})
