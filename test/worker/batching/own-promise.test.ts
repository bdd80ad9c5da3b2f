import { describe, expect, it } from 'vitest'
import { ownPromise } from '../../../src/worker/batching/own-promise.ts'

describe('a promise of the request’s own', () => {
  it('resolves with the value of the other one', async () => {
    const other = Promise.withResolvers<number>()
    const own = ownPromise(other.promise)
    other.resolve(7)
    expect(await own).toBe(7)
    expect(own).not.toBe(other.promise)
  })

  it('rejects with its reason', async () => {
    await expect(ownPromise(Promise.reject(new Error('lost')))).rejects.toThrow('lost')
  })
})
