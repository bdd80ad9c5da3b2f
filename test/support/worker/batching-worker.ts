import { createBatcher } from '../../../src/worker/batching/batcher.ts'

/** Far longer than the test: only the runtime can tell those who joined that their leader is lost. */
const JOIN_TIMEOUT_MS = 600_000

/** How long a call takes, ms. */
const CALL_MS = 200

/** A worker with one batcher: `/leave` opens a batch and ends before it is sent, `/ask` asks at a time in ms. */
function createWorker() {
  let now = 0
  const ask = createBatcher<string, string>(
    // The leader's request is not kept alive, as if the runtime had ended it.
    { now: () => now, keepAlive: () => {} },
    {
      run: async (items) => {
        await new Promise((resolve) => {
          setTimeout(resolve, CALL_MS)
        })
        return items.map((item) => `${item} answered with ${items.length}`)
      },
      maxItems: 10,
      joinTimeoutMs: JOIN_TIMEOUT_MS,
      timeoutError: () => new Error('lost'),
    },
  )
  return {
    async fetch(request: Request): Promise<Response> {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/leave') {
        void ask('left')
        return new Response('gone')
      }
      now = Number(searchParams.get('at'))
      return new Response(await ask('asked').catch(String))
    },
  }
}

// oxlint-disable-next-line import/no-default-export -- workerd takes a worker from its default export
export default createWorker()
