import { createHash } from 'node:crypto'
import { Quote } from '@phala/dcap-qvl'
import { describe, expect, it } from 'vitest'
import {
  copyBytes,
  fromHex,
  fromUtf8,
  toHex,
  utf8,
  type Bytes,
} from '../../../../src/protocol/bytes.ts'
import { replayEventLog } from '../../../../src/verify/providers/dstack/event-log.ts'
import {
  readDstackEvents,
  type DstackEvent,
} from '../../../../src/verify/providers/dstack/report.ts'
import { bootEvents, COMPOSE_HASH } from '../../../support/synthetic-dstack.ts'
import { readRealFile } from '../../../support/real-files.ts'

const REFUSED = {
  code: 'event_log',
  message: 'the event log does not add up to the measured register',
}

const RUNTIME_EVENT = 0x0800_0001

function sha384(...parts: readonly Uint8Array[]): Bytes {
  return copyBytes(createHash('sha384').update(Buffer.concat(parts)).digest())
}

/** A text with one character changed, for each of its characters. */
const otherTexts = (text: string) =>
  Array.from(
    { length: text.length },
    (_, at) => text.slice(0, at) + (text[at] === '0' ? '1' : '0') + text.slice(at + 1),
  )

/** Any one byte of name, payload, type, or given digest and pre-image changed, one after the other. */
function* changedLogs(events: readonly DstackEvent[]): Generator<readonly DstackEvent[]> {
  for (const [index, event] of events.entries()) {
    if (event.imr !== 3) continue
    const put = (change: Partial<DstackEvent>) => events.with(index, { ...event, ...change })
    yield put({ name: `${event.name}x` })
    for (const name of otherTexts(event.name)) yield put({ name })
    for (const at of [0, 8, 16, 24]) yield put({ type: (event.type ^ (1 << at)) >>> 0 })
    yield put({ version: event.version === 1 ? 2 : 1 })
    yield put({ digest: '00'.repeat(48) })
    for (const digest of otherTexts(event.digest)) yield put({ digest })
    yield put({ preimage: '00' })
    for (const preimage of otherTexts(event.preimage ?? '')) yield put({ preimage })
    yield put({ payload: copyBytes(Uint8Array.of(...event.payload, 0)) })
    for (let at = 0; at < event.payload.length; at++) {
      const payload = event.payload.slice()
      payload[at] = (payload[at] ?? 0) ^ 1
      yield put({ payload })
    }
  }
}

async function expectEveryChangeRefused(events: readonly DstackEvent[], measured: Bytes) {
  let changes = 0
  for (const changed of changedLogs(events)) {
    changes += 1
    await expect(replayEventLog(changed, measured)).rejects.toMatchObject(REFUSED)
  }
  return changes
}

describe('an event log of version 1', () => {
  const eventOf = (name: string, payload: Bytes): DstackEvent => ({
    imr: 3,
    type: RUNTIME_EVENT,
    name,
    payload,
    version: 1,
    digest: '',
    preimage: undefined,
  })
  const measuredBy = (events: readonly DstackEvent[]) =>
    events.reduce<Bytes>((register, { name, payload }) => {
      const type = Uint8Array.of(1, 0, 0, 8)
      return sha384(register, sha384(type, utf8(`:${name}:`), payload))
    }, new Uint8Array(48))

  it('is refused where a colon in a name moves the border between name and payload', async () => {
    // What ran, by a hash that begins with a colon, and what the workload added later in a system without a mark for the
    // end of boot.
    const hash = Uint8Array.of(0x3a, ...new Uint8Array(31).fill(7))
    const pretended = eventOf('compose-hash', fromHex(COMPOSE_HASH))
    const measured = measuredBy([eventOf('compose-hash', hash), pretended])
    const told = [eventOf('compose-hash:', hash.slice(1)), pretended]
    expect(measuredBy(told)).toEqual(measured)
    await expect(replayEventLog(told, measured)).rejects.toMatchObject(REFUSED)
  })

  it('may have such names after the end of boot', async () => {
    const events = [
      eventOf('compose-hash', fromHex(COMPOSE_HASH)),
      eventOf('system-ready', new Uint8Array()),
      eventOf('app:started', utf8('now')),
    ]
    expect(await replayEventLog(events, measuredBy(events))).toMatchObject({
      composeHash: COMPOSE_HASH,
    })
  })
})

describe('an event log of version 2', () => {
  /** Canonical JSON of three members, in their order; nothing in these names needs escaping. */
  const preimageOf = (name: string, payload: string) =>
    `{"name":"${name}","payload":"${payload}","type":${RUNTIME_EVENT}}`
  const served = bootEvents().map(({ name, payload }) => ({
    imr: 3,
    event_type: RUNTIME_EVENT,
    event: name,
    event_payload: payload,
    version: 2,
    digest: toHex(sha384(utf8(preimageOf(name, payload)))),
    preimage: toHex(utf8(preimageOf(name, payload))),
  }))
  const measured = served.reduce<Bytes>(
    (register, { digest }) => sha384(register, fromHex(digest)),
    new Uint8Array(48),
  )

  it('adds up by the digests of canonical JSON, given or not', async () => {
    const absent = { digest: undefined, preimage: undefined }
    const bare = served.map((event) => ({ ...event, ...absent }))
    const emptied = served.map((event) => ({ ...event, digest: '', preimage: null }))
    for (const log of [served, JSON.stringify(served), bare, emptied]) {
      expect(await replayEventLog(readDstackEvents(log), measured)).toMatchObject({
        composeHash: COMPOSE_HASH,
        appId: 'aa'.repeat(20),
      })
    }
  })

  it('is refused with any byte of an event changed', async () => {
    expect(await expectEveryChangeRefused(readDstackEvents(served), measured)).toBeGreaterThan(100)
  })

  it('is of no version that nobody knows', () => {
    expect(() => readDstackEvents(served.map((event) => ({ ...event, version: 3 })))).toThrow(
      'dstack event log',
    )
  })
})

describe('a real event log', () => {
  const readReal = (change: (event: object) => object = (same) => same) => {
    const { quote, event_log: log }: { quote: string; event_log: string } = JSON.parse(
      fromUtf8(readRealFile('tdx/dstack-quote-report.json')),
    )
    const entries: object[] = JSON.parse(log)
    const td = Quote.parse(Buffer.from(quote, 'hex')).report.asTd10()
    const measured = copyBytes(td?.rtMr3 ?? new Uint8Array())
    return { events: readDstackEvents(entries.map(change)), measured }
  }

  it.each<[string, (event: object) => object]>([
    ['as it is', (event) => event],
    ['with its digests emptied, as servers since 0.5.6 do', (event) => ({ ...event, digest: '' })],
  ])('adds up to RTMR3 of its quote and tells the workload: %s', async (_what, change) => {
    const { events, measured } = readReal(change)
    expect(await replayEventLog(events, measured)).toMatchObject({
      composeHash: '3763bc34552cf3a27ff71ad5f7a90471562a1a2df552dfc1998cba2d60da27e7',
      appId: '3763bc34552cf3a27ff71ad5f7a90471562a1a2d',
      keyProvider: expect.stringContaining('"name":"local-sgx"'),
    })
    await expect(replayEventLog(events.slice(0, -1), measured)).rejects.toMatchObject(REFUSED)
  })

  it('is refused with any byte of an event changed', async () => {
    const emptied = readReal((event) => ({ ...event, digest: '' }))
    for (const { events, measured } of [readReal(), emptied]) {
      expect(await expectEveryChangeRefused(events, measured)).toBeGreaterThan(100)
    }
  })
})
