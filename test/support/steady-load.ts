/** Requests sent one after the other on several connections until told to stop. */
export interface SteadyLoad {
  /** The statuses of all answers; what got no answer counts as its error's name. */
  stop(): Promise<readonly (number | string)[]>
  /** Resolves after this many further answers, or failures. */
  further(count: number): Promise<void>
}

/** @param send answers the status of one request */
export function startLoad(connections: number, send: () => Promise<number>): SteadyLoad {
  const end = new AbortController()
  const results: (number | string)[] = []
  const waiting: { readonly at: number; readonly resolve: () => void }[] = []
  const connection = async () => {
    while (!end.signal.aborted) {
      results.push(await send().catch((error: unknown) => nameOf(error)))
      for (const { at, resolve } of waiting) if (results.length >= at) resolve()
    }
  }
  const all = Promise.all(Array.from({ length: connections }, connection))
  return {
    stop: async () => {
      end.abort()
      await all
      return results
    },
    further: (count) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ at: results.length + count, resolve })
      return promise
    },
  }
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return `${error.name}${cause}`
}
