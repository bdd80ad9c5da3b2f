import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fromBase64, fromUtf8, toBase64, utf8 } from '../../../src/protocol/bytes.ts'
import { MalformedEvidence } from '../../../src/protocol/malformed-evidence.ts'
import { verifyDeviceReports } from '../../../src/verify/nvidia/device-report.ts'
import { realText } from '../../support/real-evidence.ts'

const deviceSchema = z.object({
  nonce: z.string(),
  certificate: z.string(),
  evidence: z.string(),
})
const [device] = z
  .array(deviceSchema)
  .min(1)
  .parse(JSON.parse(realText('gpu/hopper-evidence.json')))
if (device === undefined) throw new Error('no recorded device')

const NONCE = device.nonce
const NOW = Date.parse('2026-11-20T12:00:00Z')
const FALSE = 'the GPU evidence does not hold'

type Device = Partial<z.output<typeof deviceSchema>>

const payload = (...devices: readonly Device[]) =>
  JSON.stringify({ nonce: NONCE, arch: 'HOPPER', evidence_list: devices })
const verify = (text: string, change: object = {}) =>
  verifyDeviceReports(text, { nonce: NONCE, now: NOW, ...change })

function flipped(offset: number): Device {
  const bytes = fromBase64(device?.evidence ?? '')
  const at = offset < 0 ? bytes.length + offset : offset
  bytes[at] = (bytes[at] ?? 0) ^ 1
  return { ...device, evidence: toBase64(bytes) }
}

function certificates(change: (pems: readonly string[]) => readonly string[]): Device {
  const text = fromUtf8(fromBase64(device?.certificate ?? ''))
  const pems = text.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----\n?/g) ?? []
  return { ...device, certificate: toBase64(utf8(change(pems).join(''))) }
}

/** One base64 digit inside the body of a certificate exchanged. */
const touched = (pem = '') => {
  const at = Math.floor(pem.length / 2)
  return pem.slice(0, at) + (pem[at] === 'A' ? 'B' : 'A') + pem.slice(at + 1)
}

describe("a real device's report", () => {
  it('is signed by a device of NVIDIA, for the nonce it was asked with', async () => {
    // No certificate of the chain ends (RFC 5280 section 4.1.2.5).
    const endsAt = Date.parse('9999-12-31T23:59:59Z')
    expect(await verify(payload(device))).toEqual({ devices: 1, endsAt })
  })

  it.each<[string, Device, object, string]>([
    ['for another nonce', device, { nonce: 'ab'.repeat(32) }, 'gpu_report_nonce'],
    ['with a nonce written into it', flipped(4), {}, 'gpu_report_nonce'],
    ['with another measurement', flipped(400), {}, 'gpu_report_signature'],
    ['with another signature', flipped(-1), {}, 'gpu_report_signature'],
    [
      'before its certificates begin',
      device,
      { now: Date.parse('2020-01-01') },
      'gpu_certificates',
    ],
    ['under another root', device, { rootSpkiSha256: 'ab'.repeat(32) }, 'gpu_root'],
    ['without its root', certificates((pems) => pems.slice(0, -1)), {}, 'gpu_certificates'],
    ['without a link', certificates((pems) => pems.toSpliced(1, 1)), {}, 'gpu_certificates'],
    [
      'with certificates out of order',
      certificates((pems) => pems.toReversed()),
      {},
      'gpu_certificates',
    ],
    [
      'by the key of an authority and not of the device',
      certificates((pems) => pems.slice(1)),
      {},
      'gpu_report_signature',
    ],
  ])('is refused %s', async (_what, changed, expected, check) => {
    await expect(verify(payload(changed), expected)).rejects.toMatchObject({
      code: 'gpu',
      message: `${FALSE} (${check})`,
    })
  })

  it('counts once, however often it is shown', async () => {
    await expect(verify(payload(device, device))).rejects.toThrow(`${FALSE} (gpu_distinct)`)
  })

  it.each<[string, Device]>([
    ['nothing', {}],
    ['no certificates', { evidence: device.evidence }],
    ['no report', { certificate: device.certificate }],
    ['text that is none', { certificate: 'c', evidence: 'e' }],
    [
      'a report cut short',
      { ...device, evidence: toBase64(fromBase64(device.evidence).slice(0, -1)) },
    ],
    ['a certificate that cannot be read', certificates(() => ['no certificate'])],
  ])('is not there where the evidence carries %s', async (_what, carried) => {
    expect(await verify(payload(carried))).toBeUndefined()
    expect(await verify(payload(device ?? {}, carried))).toBeUndefined()
  })

  it('is of a device: evidence that lists none, or more than any machine has, is none', async () => {
    const none = verify(payload())
    await expect(none).rejects.toBeInstanceOf(MalformedEvidence)
    await expect(none).rejects.toThrow(/^malformed GPU evidence: evidence_list: /)
    const many = verify(payload(...Array.from({ length: 65 }, () => device)))
    await expect(many).rejects.toThrow(/^malformed GPU evidence: evidence_list: /)
  })

  it('never holds with a byte of a certificate changed', async () => {
    const changed = certificates(([leaf, ...others]) => [touched(leaf), ...others])
    const outcome = await verify(payload(changed)).catch((error: unknown) => error)
    expect(outcome).not.toBe(1)
  })
})
