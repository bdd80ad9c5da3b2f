import { beforeAll, describe, expect, it } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { checkGpuVerdict } from '../../../src/verify/nvidia/verdict.ts'
import { readRealFile } from '../../support/real-files.ts'
import {
  makeSyntheticNvidia,
  type SyntheticNvidia,
  type VerdictOf,
} from '../../support/synthetic-nvidia.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const NONCE = 'a1'.repeat(32)
const FALSE = 'the GPU evidence does not hold'

let nvidia: SyntheticNvidia

beforeAll(async () => {
  nvidia = await makeSyntheticNvidia()
})

async function check(of: Partial<VerdictOf>, devices = 1) {
  const verdict = await nvidia.verdict({ nonce: NONCE, now: NOW, ...of })
  return checkGpuVerdict(JSON.parse(verdict), JSON.parse(nvidia.jwks), {
    nonce: NONCE,
    devices,
    now: NOW,
  })
}

describe("NVIDIA's verdict", () => {
  it('tells which devices answered', async () => {
    expect(await check({ devices: 8 }, 8)).toEqual({
      devices: 8,
      models: ['GH100 A01 GSP BROM'],
      drivers: ['550.90.07'],
      endsAt: NOW + 3_600_000,
    })
  })

  it('counts until the first of its tokens expires', async () => {
    const exp = NOW / 1000 + 60
    expect(await check({ devices: 8, device: { exp } }, 8)).toMatchObject({ endsAt: exp * 1000 })
  })

  it.each<[string, Partial<VerdictOf>, string, number?]>([
    ['is negative', { overall: { 'x-nvidia-overall-att-result': false } }, 'gpu_claims'],
    ['is of another service', { overall: { iss: 'https://nras.staging' } }, 'gpu_claims'],
    ['is of a device that can be debugged', { device: { dbgstat: 'enabled' } }, 'gpu_claims'],
    ['is of a device without secure boot', { device: { secboot: false } }, 'gpu_claims'],
    ['is of unknown firmware', { device: { measres: 'fail' } }, 'gpu_claims'],
    ['is for another nonce', { overall: { eat_nonce: 'b2'.repeat(32) } }, 'gpu_nonce'],
    ['has a device with another nonce', { device: { eat_nonce: 'b2'.repeat(32) } }, 'gpu_nonce'],
    ['has expired', { now: NOW - 7_200_000 }, 'gpu_dates'],
    ['is from the future', { now: NOW + 7_200_000 }, 'gpu_dates'],
    ['is signed by a stranger', { forged: true }, 'gpu_signature'],
    ['says it needs no signature', { header: { alg: 'none' } }, 'gpu_signature'],
    ['chooses another algorithm', { header: { alg: 'ES256' } }, 'gpu_signature'],
    ['names a key that NVIDIA does not have', { header: { kid: 'x' } }, 'gpu_signature'],
    ['has a device that the overall token does not name', { swapped: true }, 'gpu_digest'],
    ['counts one device twice', { devices: 2, device: { ueid: '1' } }, 'gpu_distinct', 2],
    ['is of a device without a name', { device: { ueid: undefined } }, 'gpu_claims'],
    ['is of more devices than were asked about', { devices: 2 }, 'gpu_count'],
  ])('is refused when it %s', async (_what, of, name, devices) => {
    await expect(check(of, devices)).rejects.toMatchObject({
      code: 'gpu',
      message: `${FALSE} (${name})`,
    })
  })
})

describe('real tokens', () => {
  it('are of the expected form, and refused under keys that did not sign them', async () => {
    const verdict: unknown = JSON.parse(fromUtf8(readRealFile('gpu/hopper-detached-eat.json')))
    const expected = {
      nonce: '931d8dd0add203ac3d8b4fbde75e115278eefcdceac5b87671a748f32364dfcb',
      devices: 1,
      now: 1_749_601_900_000,
    }
    await expect(checkGpuVerdict(verdict, JSON.parse(nvidia.jwks), expected)).rejects.toMatchObject(
      { message: `${FALSE} (gpu_signature)` },
    )
  })

  it('of a local verifier, which nobody signed, are refused', async () => {
    const { detached_eat: eat }: { detached_eat: unknown } = JSON.parse(
      fromUtf8(readRealFile('gpu/h100-local-verifier-alg-none.json')),
    )
    const expected = { nonce: '1'.repeat(64), devices: 1, now: 1_784_211_000_000 }
    await expect(checkGpuVerdict(eat, JSON.parse(nvidia.jwks), expected)).rejects.toMatchObject({
      message: `${FALSE} (gpu_signature)`,
    })
  })
})
