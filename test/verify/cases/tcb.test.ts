import { describe, expect, test } from 'vitest'
import { writeTcb } from '../../../src/enclave/simulated/report.ts'
import { verifySynthetic } from '../../support/synthetic-snp.ts'
import { expectOnly, failures } from '../../support/verdicts.ts'

const TCB = { bootloader: 10, tee: 1, snp: 27, microcode: 88 }
const chip = { tcb: TCB }
const genoa = (tcb: typeof TCB) => writeTcb('genoa', tcb)

describe('TCB', () => {
  test('any component below its floor fails, however high the others are', async () => {
    for (const component of ['bootloader', 'tee', 'snp', 'microcode'] as const) {
      const floor = { bootloader: 0, tee: 0, snp: 0, microcode: 0, [component]: TCB[component] + 1 }
      const result = await verifySynthetic({ chip, policy: { tcbFloor: { genoa: floor } } })
      expectOnly(result, 'tcb_floor', `${component} ${TCB[component]} below ${TCB[component] + 1}`)
    }
    const exact = await verifySynthetic({ chip, policy: { tcbFloor: { genoa: TCB } } })
    expect(failures(exact)).toEqual([])
    const elsewhere = await verifySynthetic({ chip, policy: { tcbFloor: { milan: TCB } } })
    expectOnly(elsewhere, 'tcb_floor', 'no floor is set for Genoa')
    const fmc = { fmc: 2, bootloader: 1, tee: 1, snp: 4, microcode: 71 }
    const turin = await verifySynthetic({
      chip: { product: 'turin' },
      policy: { tcbFloor: { turin: fmc } },
    })
    expectOnly(turin, 'tcb_floor', 'fmc 1 below 2')
  })

  test('a reported or committed level above the current one fails', async () => {
    const current = {
      currentTcb: genoa({ ...TCB, snp: 26 }),
      committedTcb: genoa({ ...TCB, snp: 26 }),
    }
    expectOnly(
      await verifySynthetic({ chip, fields: current }),
      'tcb_order',
      'current is lower than reported: snp 26 below 27',
    )
    const committedTcb = genoa({ ...TCB, microcode: 89 })
    const policy = { allowProvisionalFirmware: true }
    expectOnly(
      await verifySynthetic({ chip, fields: { committedTcb }, policy }),
      'tcb_order',
      'current is lower than committed: microcode 88 below 89',
    )
    const reserved = await verifySynthetic({
      chip,
      patch: (report) => [0x38, 0x1e0].forEach((tcb) => report.set([1], tcb + 2)),
    })
    expectOnly(reserved, 'tcb_order', 'a byte that the layout of this product reserves is set')
  })

  test('a launch level below its floor fails', async () => {
    const fields = { launchTcb: genoa({ ...TCB, snp: 9 }) }
    const policy = { launchTcbFloor: { genoa: { ...TCB, snp: 10 } } }
    const result = await verifySynthetic({ chip, fields, policy })
    expectOnly(result, 'launch_tcb_floor', 'snp 9 below 10')
    expect(failures(await verifySynthetic({ chip, policy }))).toEqual([])
  })

  test('firmware below the minimum fails, and so does firmware that is not committed', async () => {
    for (const minFirmware of [
      [1, 55, 62],
      [1, 56, 0],
      [2, 0, 0],
    ] as const) {
      const result = await verifySynthetic({ policy: { minFirmware } })
      expectOnly(result, 'firmware_version', `1.55.61 is below ${minFirmware.join('.')}`)
    }
    const equal = await verifySynthetic({ policy: { minFirmware: [1, 55, 61] } })
    expect(failures(equal)).toEqual([])
    const fields = { currentFirmware: Uint8Array.of(62, 55, 1) }
    const provisional = await verifySynthetic({ fields })
    expectOnly(provisional, 'firmware_committed', '1.55.62 runs without being committed')
    const tcb = await verifySynthetic({
      chip,
      fields: { committedTcb: genoa({ ...TCB, snp: 26 }) },
    })
    expectOnly(tcb, 'firmware_committed', 'runs without being committed')
    const policy = { allowProvisionalFirmware: true }
    expect(failures(await verifySynthetic({ fields, policy }))).toEqual([])
  })
})
