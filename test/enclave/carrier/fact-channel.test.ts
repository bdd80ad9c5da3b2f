import { MessageChannel } from 'node:worker_threads'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { FactMirror, FactTeller } from '../../../src/enclave/carrier/fact-channel.ts'
import { hopKey, NO_FACTS, SINGLE_ROW, type Facts } from '../../../src/enclave/carrier/facts.ts'
import { UNATTESTED } from '../../../src/enclave/proofs/inference-hop.ts'
import { evidenceFor } from '../../support/proven-channel.ts'

const { port1, port2 } = new MessageChannel()
const sent = new Int32Array(new SharedArrayBuffer(4))
const post = vi.spyOn(port1, 'postMessage')
const teller = new FactTeller({ port: port1, sent })
const mirror = new FactMirror({ port: port2, sent })
afterEach(() => post.mockClear())

const channel = {
  provider: 'nova',
  baseUrl: 'https://nova.test',
  apiKey: undefined,
  webPki: true,
  evidence: evidenceFor('ab'.repeat(32)),
}

const first: Facts = {
  ...NO_FACTS,
  service: new Map([[SINGLE_ROW, { generation: 1, connectMs: 100 }]]),
  providers: new Map([
    ['nova', 'envelope'],
    ['vega', 'none'],
  ]),
  channels: new Map([['nova', channel]]),
  hops: new Map([[hopKey('vega', null), UNATTESTED]]),
}

describe('facts told to another thread', () => {
  it('hold as soon as they were told, before any message was received', () => {
    teller.tell(first)
    expect(mirror.facts).toEqual(first)
    teller.tell({ ...first, channels: new Map() })
    expect(mirror.facts.channels.has('nova')).toBe(false)
    teller.tell(first)
    expect(mirror.facts.channels.get('nova')).toEqual(channel)
  })

  it('keep the objects that did not change, by which receipts share their heads', () => {
    const { hops } = mirror.facts
    teller.tell({ ...first, service: new Map([[SINGLE_ROW, { generation: 2, connectMs: 100 }]]) })
    expect(mirror.facts.service.get(SINGLE_ROW)?.generation).toBe(2)
    expect(mirror.facts.hops.get(hopKey('vega', null))).toBe(hops.get(hopKey('vega', null)))
  })

  it('are sent only where they changed', () => {
    teller.tell(first)
    post.mockClear()
    teller.tell({ ...first, hops: new Map(first.hops) })
    expect(post).not.toHaveBeenCalled()
    teller.tell({ ...first, providers: new Map([['vega', 'none']]) })
    expect(post).toHaveBeenCalledOnce()
    expect(post.mock.calls[0]?.[0]).toMatchObject({
      providers: { set: [], gone: ['nova'] },
      hops: { set: [] },
    })
    expect([...mirror.facts.providers]).toEqual([['vega', 'none']])
  })

  it('arrive in a thread that asks for none too, so that nothing piles up', async () => {
    const received = new Promise((resolve) => port2.once('message', resolve))
    teller.tell({ ...first, service: new Map([[SINGLE_ROW, { generation: 9, connectMs: 100 }]]) })
    await received
    expect(mirror.facts.service.get(SINGLE_ROW)?.generation).toBe(9)
    teller.close()
  })
})
