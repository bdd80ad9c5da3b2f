import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Quote } from '@phala/dcap-qvl'
import { describe, expect, it } from 'vitest'
import { copyBytes, equalBytes, fromHex, toHex, utf8 } from '../../../../src/protocol/bytes.ts'
import { readSnpAttestation } from '../../../../src/verify/providers/dstack/attestation.ts'
import { replayEventLog } from '../../../../src/verify/providers/dstack/event-log.ts'
import { digestMrConfig, readMrConfig } from '../../../../src/verify/providers/dstack/mr-config.ts'
import { readDstackEvents } from '../../../../src/verify/providers/dstack/report.ts'
import { requireSnpImage } from '../../../../src/verify/providers/dstack/snp-image.ts'
import { requireTdxImage } from '../../../../src/verify/providers/dstack/tdx-image.ts'
import { readVmConfig } from '../../../../src/verify/providers/dstack/vm-config.ts'
import { publishedFloor } from '../../../../src/verify/snp/published-floor.ts'
import { STANDALONE_POLICY, type SnpPolicy } from '../../../../src/verify/snp/policy.ts'
import { readReport } from '../../../../src/verify/snp/report.ts'
import { verifySnp } from '../../../../src/verify/snp/verify-snp.ts'
import { realText } from '../../../support/real-evidence.ts'
import { splitPem } from '../../../support/synthetic-snp.ts'

/**
 * What dstack recorded of real machines and publishes in its repository (Dstack-TEE/dstack, Apache-2.0; tried at commit
 * 312dc605). It is not copied here: DSTACK_REPOSITORY names a checkout of it, and without one this suite is skipped.
 */
const REPOSITORY = process.env['DSTACK_REPOSITORY']

const recorded = (path: string) => readFileSync(join(REPOSITORY ?? '', 'dstack', path))
const recordedJson = (path: string) => JSON.parse(recorded(path).toString())

describe.skipIf(REPOSITORY === undefined)('recorded evidence of dstack on SEV-SNP', () => {
  const guest = () =>
    readSnpAttestation(copyBytes(recorded('dstack-attest/tests/sev_snp_attestation.bin')))

  /** The machine, by AMD's certificates; AMD's revocation list was not recorded. */
  const verifyRecorded = (report: Uint8Array, policy: Partial<SnpPolicy> = {}) => {
    const [, ark = ''] = splitPem(realText('snp/milan.ask-ark-asvk.pem'))
    const [vcek, ask] = ['vcek', 'ask'].map((name) =>
      recorded(`dstack-attest/tests/sev_snp_${name}.pem`).toString(),
    )
    return verifySnp(copyBytes(report), `${vcek}${ask}${ark}`, {
      now: Date.parse('2026-06-18T00:00:00Z'),
      policy: { ...STANDALONE_POLICY, ...policy },
    })
  }

  it("is of a genuine machine by AMD's certificates, below the firmware floor that holds unless told", async () => {
    const { report } = guest()
    expect((await verifyRecorded(report)).ok).toBe(true)
    const floor = publishedFloor(readReport(report))
    const { checks } = await verifyRecorded(report, { tcbFloor: floor, launchTcbFloor: floor })
    expect(checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([
      'tcb_floor',
      'launch_tcb_floor',
    ])
  })

  it('was made for the REPORT_DATA that its README names, and HOST_DATA is its document', async () => {
    const { report: bytes, mrConfig } = guest()
    const report = readReport(bytes)
    const marker = utf8('attest-test-fixture-2026')
    expect(equalBytes(report.reportData.slice(0, marker.length), marker)).toBe(true)
    expect(toHex(await digestMrConfig(mrConfig))).toBe(toHex(report.hostData))
    expect(readMrConfig(mrConfig)).toMatchObject({
      app_id: '86e59625be93207bc2351c4d1bba20037cec8e16',
      compose_hash: expect.stringMatching(/^86e59625/),
    })
  })

  it('comes to the launch digest of the release that it names, in the form since 0.6', async () => {
    const { attestation } = recordedJson('verifier/fixtures/sev-snp-attestation.json')
    const { report, config } = readSnpAttestation(fromHex(attestation))
    const { os_image_hash: named } = JSON.parse(config)
    const { snpLaunch } = readVmConfig(config)
    const measured = readReport(report).measurement
    expect(await requireSnpImage(measured, snpLaunch, [named])).toBe(named)
    const other = measured.with(0, (measured[0] ?? 0) ^ 1)
    await expect(requireSnpImage(copyBytes(other), snpLaunch, [named])).rejects.toMatchObject({
      checks: ['os_image_launch'],
    })
  })

  it('is refused with any byte of the report changed that its chip signed', async () => {
    const { report } = guest()
    for (let at = 0; at < 0x2a0; at += 7) {
      const changed = report.with(at, (report[at] ?? 0) ^ 1)
      const refused = await verifyRecorded(changed).then(
        ({ ok }) => !ok,
        () => true,
      )
      expect(refused, `byte ${at}`).toBe(true)
    }
  })
})

describe.skipIf(REPOSITORY === undefined)('recorded evidence of dstack 0.6 on TDX', () => {
  const recordedGuest = () => {
    const answer = recordedJson('verifier/fixtures/tdx-lite-getquote.json')
    const td = Quote.parse(fromHex(answer.quote)).report.asTd10()
    if (td === null) throw new Error('no TDX quote')
    const [rtMr0, rtMr1, rtMr2, rtMr3] = [td.rtMr0, td.rtMr1, td.rtMr2, td.rtMr3].map(copyBytes)
    if (!rtMr0 || !rtMr1 || !rtMr2 || !rtMr3) throw new Error('no registers')
    const { os_image_hash: named } = JSON.parse(answer.vm_config)
    return {
      named: String(named),
      eventLog: readDstackEvents(answer.event_log),
      vmConfig: readVmConfig(answer.vm_config),
      quote: { mrTd: copyBytes(td.mrTd), rtMr: [rtMr0, rtMr1, rtMr2, rtMr3] as const },
    }
  }

  it('adds up to RTMR3 and says its workload', async () => {
    const { eventLog, quote } = recordedGuest()
    expect(await replayEventLog(eventLog, quote.rtMr[3])).toMatchObject({
      appId: '86b0e55f2fa8e4fb69d890f14f54d5612707646e',
    })
  })

  it('comes to the registers of the release that it names, with its memory and no other', async () => {
    const { named, vmConfig, ...guest } = recordedGuest()
    expect(await requireTdxImage({ ...guest, vmConfig }, [named])).toBe(named)
    const larger = { ...vmConfig, memoryBytes: 2 ** 32 }
    await expect(requireTdxImage({ ...guest, vmConfig: larger }, [named])).rejects.toMatchObject({
      checks: ['rtmr0'],
    })
  })
})
