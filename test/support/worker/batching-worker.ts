import { waitUntil } from 'cloudflare:workers'
import { createBatcher } from '../../../src/worker/batching/batcher.ts'
import { createCoalescer } from '../../../src/worker/batching/coalescer.ts'

/** Far longer than the test: only the runtime can tell those who joined that their leader is lost. */
const JOIN_TIMEOUT_MS = 600_000

/** How long a call takes, ms. */
const CALL_MS = 200

/** Where a batch waits for others to join, it waits until so many requests of its moment have come. */
const joining = { at: 0, arrived: 0, expected: 0 }

const startTimer = globalThis.setTimeout

function startTurn(work: () => void): void {
  if (joining.arrived >= joining.expected) startTimer(work, 0)
  else startTimer(() => startTurn(work), 1)
}

// One turn of the event loop is what the batcher waits by.
Object.assign(globalThis, {
  setTimeout: (work: () => void, ms: number) => (ms === 0 ? startTurn(work) : startTimer(work, ms)),
})

/** Work in steps, each of which comes some ms after the one before, and keeps the thread busy. */
async function workInSteps(ms: number, busyMs: number): Promise<void> {
  for (let step = 0; step < 3; step += 1) {
    const { promise, resolve } = Promise.withResolvers<void>()
    startTimer(() => {
      resolve()
      const end = Date.now() + busyMs
      while (Date.now() < end);
    }, ms / 3)
    await promise
  }
}

/**
 * A worker with one batcher: `/leave` opens a batch and ends before it is sent, `/ask` asks, maybe several times; both at a time in
 * ms. `of`: how many requests share the call. `/together` streams an answer once its work, done by one request for all, has ended.
 */
function createWorker() {
  let now = 0
  const batcherOf = (joinTimeoutMs: number, keepAlive: (work: Promise<unknown>) => void) =>
    createBatcher<string, string>(
      { now: () => now, keepAlive },
      {
        run: async (items) => {
          await new Promise((resolve) => {
            setTimeout(resolve, CALL_MS)
          })
          return items.map((item) => `${item} answered with ${items.length}`)
        },
        maxItems: 10,
        joinTimeoutMs,
        timeoutError: () => new Error('lost'),
      },
    )
  // The leader's request is not kept alive, as if the runtime had ended it.
  const ask = batcherOf(JOIN_TIMEOUT_MS, () => {})
  const askBriefly = batcherOf(CALL_MS / 4, waitUntil)
  const together = createCoalescer(
    { now: () => now, keepAlive: waitUntil },
    { maxItems: 20, joinTimeoutMs: JOIN_TIMEOUT_MS, timeoutError: () => new Error('lost') },
  )
  async function answerTogether(
    writer: WritableStreamDefaultWriter,
    { takes, busy }: { readonly takes: number; readonly busy: number },
  ): Promise<void> {
    await together('group', () => workInSteps(takes, busy))
    await writer.write(new TextEncoder().encode('done'))
    await writer.close()
  }
  return {
    async fetch(request: Request): Promise<Response> {
      const { pathname, searchParams } = new URL(request.url)
      now = Number(searchParams.get('at'))
      const of = searchParams.get('of')
      if (of !== null) {
        if (joining.at !== now)
          Object.assign(joining, { at: now, arrived: 0, expected: Number(of) })
        joining.arrived += 1
      }
      if (pathname === '/leave') {
        void ask('left')
        return new Response('gone')
      }
      if (pathname === '/together') {
        const { readable, writable } = new IdentityTransformStream()
        const [takes, busy] = ['takes', 'busy'].map((name) => Number(searchParams.get(name)))
        waitUntil(answerTogether(writable.getWriter(), { takes: takes ?? 0, busy: busy ?? 0 }))
        return new Response(readable)
      }
      if (pathname === '/ask-briefly') return new Response(await askBriefly('asked').catch(String))
      const times = Number(searchParams.get('times') ?? 1)
      const asked = Array.from({ length: times }, () => ask('asked').catch(String))
      return new Response((await Promise.all(asked)).join())
    },
  }
}

// oxlint-disable-next-line import/no-default-export -- workerd takes a worker from its default export
export default createWorker()
