import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundleForWorkerd } from '../../support/bundle.ts'

let miniflare: Miniflare
/** What the runtime says by itself. */
const reported: string[] = []
beforeAll(async () => {
  miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script: await bundleForWorkerd('test/support/worker/batching-worker.ts'),
      compatibilityDate: '2026-11-17',
      handleStructuredLogs: ({ message }) => void reported.push(message),
    }),
  )
  await miniflare.ready
}, 60_000)
afterAll(() => miniflare.dispose())

const get = async (path: string) => (await miniflare.dispatchFetch(`http://worker${path}`)).text()

test('an item that joins the batch of a request that the runtime has ended is told so at once, and a later one is answered', async () => {
  expect(await get('/leave?at=0')).toBe('gone')
  expect(await get('/ask?at=0')).toBe('Error: lost')
  expect(await get('/ask?at=1000')).toBe('asked answered with 1')
}, 60_000)

test('all that join such a batch at once are told so, and one that comes just after them is answered', async () => {
  expect(await get('/leave?at=3000')).toBe('gone')
  expect(await get('/ask?at=3000&times=3')).toBe('Error: lost,Error: lost,Error: lost')
  expect(await get('/ask?at=3000')).toBe('asked answered with 1')
}, 60_000)

test('requests that wait for nothing but the call of another one are answered, not ended as hung', async () => {
  // The first that joins waits for its leader, too.
  const answers = await Promise.all([1, 2, 3].map(() => get('/ask?at=5000&of=3')))
  expect(answers).toEqual(Array.from({ length: 3 }, () => 'asked answered with 3'))
}, 60_000)

test('requests that no longer wait are not told of the end of the call, which the runtime would report', async () => {
  const answers = await Promise.all([1, 2, 3].map(() => get('/ask-briefly?at=7000&of=3')))
  expect(answers.toSorted()).toEqual(['Error: lost', 'Error: lost', 'asked answered with 3'])
  expect(await get('/ask?at=9000')).toBe('asked answered with 1')
  expect(reported).toEqual([])
}, 60_000)

test('requests whose work, done by another one, ends later than the rest go on as themselves and can write their answers', async () => {
  // Only code that V8 has optimised has ever gone on as another request. On a machine with other work the rounds take minutes.
  for (let round = 1; round <= 100; round += 1) {
    const works = Array.from({ length: 13 }, (_, index) =>
      get(`/together?at=${10_000 * round}&of=13&takes=${(index * 5) % 13}&busy=${round % 3}`),
    )
    expect(await Promise.all(works)).toEqual(Array.from({ length: 13 }, () => 'done'))
  }
  expect(reported).toEqual([])
}, 300_000)
