import { expect, it } from 'vitest'
import { HeldText } from '../../../src/worker/formats/held-text.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'

const MI = 1024 * 1024

it.each([
  ['limited', (): void => {}],
  ['not limited', undefined],
] as const)('text that is held has 8 Mi characters at most where memory is %s', (_how, take) => {
  const text = new HeldText(take)
  for (let piece = 0; piece < 8; piece += 1) text.add(MI)
  expect(() => text.add(1)).toThrow(new BrokenStream('text_too_long'))
})

it('what is held beside the text takes memory, and does not count in its length', () => {
  let taken = 0
  const text = new HeldText((bytes) => void (taken += bytes))
  for (let piece = 0; piece < 9; piece += 1) text.add(1, MI)
  expect(taken).toBeGreaterThan(8.9 * MI)
  expect(taken).toBeLessThan(9.1 * MI)
})

it('text for which there is no memory ends its stream', () => {
  const text = new HeldText(() => {
    throw new Error('none is left')
  })
  expect(() => text.add(MI)).toThrow(new BrokenStream('no_memory'))
})
