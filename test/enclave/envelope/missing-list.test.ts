import { beforeAll, expect, it } from 'vitest'
import { createMissingListNotice } from '../../../src/enclave/envelope/missing-list.ts'
import { describeMessage } from '../../../src/host/stack/daemon-messages.ts'
import type { Envelope } from '../../../src/protocol/envelope.ts'
import { envelopeOf, makeWorld } from '../../support/synthetic-world.ts'

let without: Envelope
let listed: Envelope

beforeAll(async () => {
  without = await envelopeOf(await makeWorld())
  listed = { ...without, snp_crl_b64: 'AAAA' }
}, 60_000)

it('reports a missing revocation list once, and again after there was one', () => {
  const told: string[] = []
  const notice = createMissingListNotice((message) => told.push(describeMessage(message)))
  for (const envelope of [listed, without, without]) notice({ envelope })
  expect(told).toEqual([
    expect.stringMatching(/^revocation list missing: neither host nor AMD's key service gave one/),
  ])
  for (const envelope of [listed, without]) notice({ envelope })
  expect(told).toHaveLength(2)
})
