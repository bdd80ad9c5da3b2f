import { connect } from 'cloudflare:sockets'
import { waitUntil } from 'cloudflare:workers'
import { App } from './app.ts'
import { makeChunkObject } from './chunks/chunk-object.ts'
import { ChunkSwitch } from './chunks/chunk-switch.ts'
import { openPipeEnd } from './chunks/open-pipe-end.ts'
import { openEmbeddedLedger } from './embedded/embedded-ledger.ts'
import type { Env } from './env.ts'
import { eventStream } from './http/reply.ts'
import { sweep } from './settle/sweep.ts'
import { clusteredIds } from './storage/clustered-ids.ts'
import { LocalLedger } from './storage/local-ledger.ts'
import { makePostgresPool } from './storage/postgres-pool.ts'
import { makeStoreObject } from './storage/store-object.ts'

/** Stack frames an error keeps, where keeping them is safe; the log has at most eight. */
const STACK_FRAMES = 8

// V8 keeps the functions and receivers of an error's stack with the error, and workerd keeps the error of a stream that was
// broken off as long as the stream. It makes such errors outside the program, so their stacks are only the async functions
// that wait for the stream: each would hold the other, and with them the whole request, for ever. Unless the runtime leaves
// those out, errors have no stacks.
Object.assign(Error, { stackTraceLimit: 0 })

/** Joins the storage object and the requests of its isolate. */
const localLedger = new LocalLedger()

/** Joins the object to which chunks of streams come and the requests of its isolate. */
const chunkSwitch = new ChunkSwitch(Date.now, () => crypto.randomUUID())

/** The Durable Object classes named in the runtime's configuration. */
export const StoreObject = makeStoreObject(openEmbeddedLedger, sweep, localLedger, Date.now)
export const ChunkObject = makeChunkObject(chunkSwitch, Date.now)
export const PostgresPool = makePostgresPool(sweep, { now: Date.now, random: Math.random })

/**
 * The worker's entry point. An isolate has one environment, so its App is opened on the first event and kept in this
 * closure.
 */
function createWorker(): Record<'service' | 'drain' | 'pipes', ExportedHandler<Env>> {
  let app: App | undefined
  const deps = {
    now: () => Date.now(),
    newId: clusteredIds(() => crypto.randomUUID(), Date.now),
    randomBytes: (length: number) => crypto.getRandomValues(new Uint8Array(length)),
    probeConnect,
    keepAlive: waitUntil,
    localLedger,
    chunkSwitch,
  }
  const open = (env: Env) => {
    if (env.NO_ASYNC_STACKS) Object.assign(Error, { stackTraceLimit: STACK_FRAMES })
    return new App(env, deps)
  }
  const appOf = (env: Env) => (app ??= open(env))
  return {
    service: {
      fetch: (request, env, execution) => appOf(env).handle(request, execution),
      scheduled: ({ scheduledTime }, env) => appOf(env).sweep(scheduledTime),
    },
    drain: { fetch: (request, env) => appOf(env).drain(request) },
    pipes: {
      fetch: async ({ url }, { CHUNKS }) => eventStream(await openPipeEnd(url, CHUNKS), {}),
    },
  }
}

async function probeConnect(address: { hostname: string; port: number }): Promise<void> {
  const socket = connect(address)
  await socket.opened
  await socket.close()
}

const worker = createWorker()

/**
 * What the supervisor asks before it stops the runtime, and what streams ask for the ends of their pipes. No socket or route of clients leads
 * to either.
 */
export const { drain, pipes } = worker

export default worker.service
