import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DaemonReady } from '../../../src/protocol/boot.ts'
import { linkConfigSchema, linkStateSchema, type LinkState } from '../../../src/protocol/link.ts'
import { CLAIMS } from '../claims-to-sign.ts'
import { startDaemonProcess, type DaemonProcess } from '../daemon-process.ts'

/** A real daemon with two carriers: what one thread learns, the others go by. */

const UNATTESTED = { adapter: 'none' }

// Nobody listens there, so that a call that is carried meets nobody.
const FORMER = 'http://127.0.0.1:1/v1'
const LATTER = 'http://127.0.0.1:2/v1'
const OTHER = 'http://127.0.0.1:3/v1'

const config = (name: string, base_url = FORMER, attestation: object = UNATTESTED) => ({
  service: { name, mode: 'local' },
  providers: { nova: { base_url, attestation } },
  routes: [{ model_key: 'm', provider: 'nova', upstream_model: 'x', type: 'chat' }],
})

let daemon: DaemonProcess
let ready: DaemonReady

beforeAll(async () => {
  daemon = await startDaemonProcess(config('first'), {
    carrierPorts: [0, 0],
    configText: JSON.stringify(config('first')),
  })
  ;({ ready } = await daemon.next('ready'))
}, 120_000)
afterAll(() => daemon.stop())

/** The daemon's answers on the link of each thread, the main thread's first. */
const callAll = (path: string, init?: Parameters<DaemonProcess['call']>[2]) =>
  Promise.all(
    [ready.linkPort, ...ready.carrierPorts].map((linkPort) =>
      daemon.call({ ...ready, linkPort }, path, init),
    ),
  )

async function wholeStates(): Promise<LinkState[]> {
  return (await callAll('/v1/state')).map((reply) => linkStateSchema.parse(reply.json()))
}

/** What all threads have in common. */
async function states(): Promise<Omit<LinkState, 'thread'>[]> {
  return (await wholeStates()).map(({ thread: _own, ...state }) => state)
}

async function signed(): Promise<number[]> {
  const [reply] = await callAll('/v1/config')
  const { configuration_sha256: configurationSha256 } = linkConfigSchema.parse(reply?.json())
  const receipt = {
    claims: CLAIMS,
    provider: 'nova',
    configuration_sha256: configurationSha256,
    evidence_sha256: null,
  }
  const body = JSON.stringify({ receipts: [receipt] })
  return (await callAll('/v1/sign', { method: 'POST', body })).map(({ status }) => status)
}

/** What becomes of calls of the provider as one without attestation at each of these addresses; undefined: as an attested one. */
function called(...addresses: readonly (string | undefined)[]): Promise<unknown[]> {
  return Promise.all(
    addresses.map(async (address) => {
      const headers = address === undefined ? {} : { 'x-cmr-unattested': address }
      const init = { method: 'POST', body: '{}', headers }
      const replies = await callAll('/v1/egress/nova/chat/completions', init)
      const codes = replies.map((reply) => reply.headers['x-cmr-egress-error'])
      return new Set(codes).size === 1 ? codes[0] : codes
    }),
  )
}

const CARRIED = 'provider_unreachable'

describe('the carriers of a daemon', () => {
  it('report the same state as its main thread, and sign for a provider without attestation', async () => {
    const [main, ...others] = await states()
    expect(others).toEqual([main, main])
    expect(await signed()).toEqual([200, 200, 200])
  })

  it('go by a configuration from the moment that it is reported as loaded', async () => {
    daemon.send({ type: 'reload', configText: JSON.stringify(config('second')) })
    await daemon.next('reloaded')
    expect((await states()).map(({ generation }) => generation)).toEqual([2, 2, 2])
    expect(await signed()).toEqual([200, 200, 200])
  })

  it('call a provider without attestation where it is or was, and one that became attested by its proof alone', async () => {
    const refused = 'invalid_request'
    expect(await called(FORMER, LATTER, undefined)).toEqual([CARRIED, 'not_found', refused])
    daemon.send({ type: 'reload', configText: JSON.stringify(config('moved', LATTER)) })
    await daemon.next('reloaded')
    expect(await called(FORMER, LATTER, undefined)).toEqual([CARRIED, CARRIED, refused])
    const attestation = { adapter: 'dstack', allowed_compose_hashes: ['ab'.repeat(32)] }
    const attested = config('attested', OTHER, attestation)
    daemon.send({ type: 'reload', configText: JSON.stringify(attested) })
    await daemon.next('reloaded')
    expect(await called(LATTER, OTHER, undefined)).toEqual([
      CARRIED,
      'not_found',
      'provider_unproven',
    ])
    daemon.send({ type: 'reload', configText: JSON.stringify(config('back', OTHER)) })
    await daemon.next('reloaded')
    expect(await called(OTHER, undefined)).toEqual([CARRIED, refused])
  })

  it('name the envelope of a new TLS key from the moment that the key is reported', async () => {
    const [before] = await states()
    daemon.send({ type: 'renew_tls' })
    await daemon.next('tls_renewed')
    const digests = (await states()).map(({ envelope_sha256: sha256 }) => sha256)
    expect(new Set(digests).size).toBe(1)
    expect(digests[0]).not.toBe(before?.envelope_sha256)
  })

  it('are started again with the facts of then when the supervisor has one ended', async () => {
    const before = (await wholeStates()).map(({ thread }) => thread)
    expect(new Set(before).size).toBe(3)
    daemon.send({ type: 'end_carrier', port: ready.carrierPorts[1] ?? 0 })
    expect((await daemon.next('carrier_lost')).reason).toBe('number 2 ended')
    expect((await daemon.next('carrier_restored')).reason).toBe('number 2')
    const [main, ...others] = await states()
    expect(others).toEqual([main, main])
    expect(await signed()).toEqual([200, 200, 200])
    const after = (await wholeStates()).map(({ thread }) => thread)
    expect(after.slice(0, 2)).toEqual(before.slice(0, 2))
    expect(before).not.toContain(after[2])
  })

  it('end with it', async () => {
    daemon.child.kill('SIGTERM')
    expect(await daemon.exit).toBe(0)
  })
})
