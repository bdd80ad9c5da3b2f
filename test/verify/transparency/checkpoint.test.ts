import { describe, expect, test } from 'vitest'
import { toBase64 } from '../../../src/protocol/bytes.ts'
import { formatCheckpoint, parseCheckpoint } from '../../../src/verify/transparency/checkpoint.ts'

const HEAD = { origin: 'log.example', size: 13, root: new Uint8Array(32).fill(7) }
const ROOT = toBase64(HEAD.root)

describe('a checkpoint', () => {
  test('is read as it is written', () => {
    expect(parseCheckpoint(formatCheckpoint(HEAD))).toEqual(HEAD)
    expect(parseCheckpoint(formatCheckpoint({ ...HEAD, size: 0 })).size).toBe(0)
  })

  test.each([
    ['without an origin', `\n13\n${ROOT}\n`],
    ['whose size is no number', `log.example\nx\n${ROOT}\n`],
    ['whose size is empty', `log.example\n\n${ROOT}\n`],
    ['whose size is negative', `log.example\n-1\n${ROOT}\n`],
    ['whose size has a leading zero', `log.example\n013\n${ROOT}\n`],
    ['whose size is in hex', `log.example\n0x13\n${ROOT}\n`],
    ['whose size has more digits than a number holds', `log.example\n${'1'.repeat(17)}\n${ROOT}\n`],
    ['without a line end', `log.example\n13\n${ROOT}`],
    ['with an extension line', `log.example\n13\n${ROOT}\nextension\n`],
    ['with an empty line after it', `log.example\n13\n${ROOT}\n\n`],
  ])('%s is refused', (_what, text) => {
    expect(() => parseCheckpoint(text)).toThrow(
      expect.objectContaining({
        fault: 'malformed_checkpoint',
        message: 'the checkpoint has no origin, size and root of the expected form',
      }),
    )
  })
})
