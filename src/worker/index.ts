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

/** Number of stack frames that an error keeps where keeping them is safe; the log prints at most eight. */
const STACK_FRAMES = 8

// V8 keeps the functions and receivers of an error's stack with the error, and workerd keeps the error of a cancelled stream
// as long as the stream. It creates such errors outside JavaScript, so their stacks hold only the async functions that await
// the stream. Error and stream would then keep each other, and the whole request, alive for ever. So errors have no stacks,
// unless the runtime omits async functions from them.
Object.assign(Error, { stackTraceLimit: 0 })

/** Connects the storage object with the requests of its isolate. */
const localLedger = new LocalLedger()

/** Connects the object that receives chunks of streams with the requests of its isolate. */
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
 * Entry points that no socket or route of clients reaches: the supervisor calls `drain` before it stops the runtime; streams
 * request the ends of their pipes from `pipes`.
 */
export const { drain, pipes } = worker

export default worker.service
