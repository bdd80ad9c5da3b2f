import { describe, expect, it } from 'vitest'
import { OwnSignal } from '../../../src/worker/calls/own-signal.ts'

describe('a signal of the router’s own', () => {
  it('tells its listeners once, after it is aborted, and not those that were removed', () => {
    const signal = new OwnSignal()
    const heard: unknown[] = []
    signal.onAbort(() => {
      heard.push([signal.aborted, signal.reason])
      signal.onAbort(() => heard.push('added meanwhile'))
    })
    const forget = signal.onAbort(() => heard.push('removed'))
    forget()
    signal.throwIfAborted()
    signal.abort('first')
    signal.abort('second')
    signal.onAbort(() => heard.push('too late'))
    expect(heard).toEqual([[true, 'first']])
    expect(signal.reason).toBe('first')
  })

  it('throws its reason once it is aborted, whatever that is', () => {
    const signal = new OwnSignal()
    signal.abort(undefined)
    expect(signal.aborted).toBe(true)
    let thrown: unknown = 'nothing'
    try {
      signal.throwIfAborted()
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeUndefined()
  })

  it('is one signal of the platform, with the same reason, whether it is asked for before or after', () => {
    const reason = new Error('out of time')
    const before = new OwnSignal()
    const asked = before.ofPlatform()
    expect(asked.aborted).toBe(false)
    const order: string[] = []
    asked.addEventListener('abort', () => order.push('platform'))
    before.onAbort(() => order.push('own'))
    before.abort(reason)
    expect([asked.aborted, asked.reason, before.ofPlatform()]).toEqual([true, reason, asked])
    expect(order).toEqual(['platform', 'own'])
    const after = new OwnSignal()
    after.abort(reason)
    expect([after.ofPlatform().aborted, after.ofPlatform().reason]).toEqual([true, reason])
  })
})
