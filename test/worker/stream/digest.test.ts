import { build } from 'esbuild'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { createDigest } from '../../../src/worker/stream/digest.ts'

const SIZES = [0, 1, 150, 4_095, 4_096, 4_097, 8_192, 100_000]

function sample(size: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: size }, (_, i) => (i * 31) % 256)
}

test.each(SIZES)('on Node, %i bytes in pieces hash as the whole', async (size) => {
  const bytes = sample(size)
  const digest = createDigest()
  for (let i = 0; i < size; i += 777) digest.update(bytes.subarray(i, i + 777))
  expect(await digest.finish()).toBe(await sha256Hex(bytes))
})

test('bytes may be overwritten once they are taken', async () => {
  const bytes = sample(150)
  const expected = await sha256Hex(bytes)
  const digest = createDigest()
  digest.update(bytes)
  bytes.fill(0)
  expect(await digest.finish()).toBe(expected)
})

describe('in workerd', () => {
  let worker: Miniflare | undefined

  beforeAll(async () => {
    const source = `
      import { createDigest } from './src/worker/stream/digest.ts'
      export default {
        async fetch(request) {
          const bytes = new Uint8Array(await request.arrayBuffer())
          const step = Number(new URL(request.url).searchParams.get('step'))
          const digest = createDigest()
          const abandoned = createDigest()
          for (let i = 0; i < bytes.length; i += step) {
            const piece = bytes.slice(i, i + step)
            digest.update(piece)
            abandoned.update(piece)
            piece.fill(0)
          }
          return new Response((await digest.finish()) + (crypto.DigestStream ? ' native' : ''))
        },
      }`
    const { outputFiles } = await build({
      stdin: { contents: source, resolveDir: new URL('../../..', import.meta.url).pathname },
      bundle: true,
      format: 'esm',
      write: false,
    })
    worker = new Miniflare(
      convertV4MiniflareOptions({
        modules: true,
        script: outputFiles[0]?.text ?? '',
        compatibilityDate: '2026-11-01',
      }),
    )
    await worker.ready
  }, 30_000)

  afterAll(() => worker?.dispose())

  test.each([150, 4_096, 50_000])('pieces of %i bytes hash as the whole', async (step) => {
    for (const size of SIZES) {
      const bytes = sample(size)
      const url = `http://localhost/?step=${step}`
      const response = await worker?.dispatchFetch(url, { method: 'POST', body: bytes })
      expect(await response?.text()).toBe(`${await sha256Hex(bytes)} native`)
    }
  })
})
