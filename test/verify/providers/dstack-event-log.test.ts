import { Quote } from '@phala/dcap-qvl'
import { describe, expect, it } from 'vitest'
import { copyBytes, fromHex, fromUtf8 } from '../../../src/protocol/bytes.ts'
import { replayEventLog } from '../../../src/verify/providers/dstack-event-log.ts'
import { readRealFile } from '../../support/real-files.ts'

const EVENT_LOG = 'the event log does not add up to the measured register'

describe('a real event log', () => {
  it('adds up to RTMR3 of its quote and tells the workload', async () => {
    const { quote, event_log: log }: { quote: string; event_log: string } = JSON.parse(
      fromUtf8(readRealFile('tdx/dstack-quote-report.json')),
    )
    const td = Quote.parse(Buffer.from(quote, 'hex')).report.asTd10()
    type Entry = {
      imr: number
      event_type: number
      digest: string
      event: string
      event_payload: string
    }
    const entries: Entry[] = JSON.parse(log)
    const events = entries.map((entry) => ({
      imr: entry.imr,
      type: entry.event_type,
      digest: entry.digest,
      name: entry.event,
      payload: fromHex(entry.event_payload),
    }))
    const measured = copyBytes(td?.rtMr3 ?? new Uint8Array())
    expect(await replayEventLog(events, measured)).toMatchObject({
      composeHash: '3763bc34552cf3a27ff71ad5f7a90471562a1a2df552dfc1998cba2d60da27e7',
      appId: '3763bc34552cf3a27ff71ad5f7a90471562a1a2d',
    })
    await expect(replayEventLog(events.slice(0, -1), measured)).rejects.toMatchObject({
      code: 'event_log',
      message: EVENT_LOG,
    })
  })
})
