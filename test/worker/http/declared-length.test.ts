import { describe, expect, it } from 'vitest'
import { declaredLength } from '../../../src/worker/http/declared-length.ts'

describe('the declared length of a body', () => {
  it.each([
    ['0', 0],
    ['5', 5],
    ['005', 5],
    ['99999999999999999999', 1e20],
  ])('given as %s is %i bytes', (text, bytes) => {
    expect(declaredLength(new Headers({ 'content-length': text }))).toBe(bytes)
  })

  it('is unknown where none is declared', () => {
    expect(declaredLength(new Headers())).toBeUndefined()
  })

  it.each(['5, 5', '5,5', '5, 6', '+5', '-5', '0x5', '5e3', '5.0', 'five', ''])(
    'is unknown where it is given as "%s"',
    (text) => {
      expect(declaredLength(new Headers({ 'content-length': text }))).toBeUndefined()
    },
  )

  it('is unknown where a transfer coding decides how long the body is', () => {
    const headers = { 'content-length': '5', 'transfer-encoding': 'chunked' }
    expect(declaredLength(new Headers(headers))).toBeUndefined()
  })
})
