import type { PresentedKey } from './auth/api-key.ts'
import type { BatchDeps } from './batching/batcher.ts'
import { createCoalescer } from './batching/coalescer.ts'
import { oneTimer } from './batching/one-timer.ts'
import { openChunkStreams, type ChunkStreams } from './chunks/chunk-streams.ts'
import type { Context } from './context.ts'
import type { Env } from './env.ts'
import type { Permit } from './limits/request-cap.ts'
import { RequestTurns } from './limits/request-turns.ts'
import { openSharedLimits, type SharedLimits } from './limits/shared-limits.ts'
import { pause } from './routing/budget.ts'
import { CarriedCalls } from './routing/carried-calls.ts'
import type { RuntimeDeps } from './runtime-deps.ts'
import type { Settings } from './settings.ts'
import { Evidence } from './settle/evidence.ts'
import { KeptAnswers } from './settle/kept-answers.ts'
import { LostAdmissions } from './settle/lost-admissions.ts'
import type { StorageParts } from './storage-parts.ts'
import { StorageUnavailable } from './storage/database.ts'
import { openDirectWindow } from './stream/direct-window.ts'

/** A settlement needs a commit, and a signature if the answer came without one. */
const SETTLEMENTS = {
  maxItems: 64,
  joinTimeoutMs: 30_000,
  timeoutError: () => new StorageUnavailable('the settlement was not confirmed in time'),
}

/** The dependencies that contexts share with the rest of the isolate. */
export type ContextHost = RuntimeDeps &
  BatchDeps &
  Pick<
    Context,
    'link' | 'log' | 'metrics' | 'watch' | 'telemetry' | 'traces' | 'openRequests' | 'shutdown'
  >

/** The members of a context that differ for each request. */
export interface RequestFacts extends Pick<Context, 'requestId' | 'waitUntil'> {
  /** Aborts when the client disconnects. */
  readonly client: AbortSignal
  /** The key and the permit of a request to a keyed endpoint. */
  readonly key: PresentedKey | undefined
  readonly permit: Permit | undefined
}

/** The part of a context that does not depend on the request. */
type CommonContext = Omit<
  Context,
  | 'requestId'
  | 'after'
  | 'owner'
  | 'presentedKey'
  | 'client'
  | 'inTurn'
  | 'finishInTurn'
  | 'yieldDuring'
  | 'takeMemory'
  | 'waitUntil'
>

/** Builds the context of each request of an isolate, and holds what all contexts share. */
export class RequestContexts {
  readonly #env: Env
  readonly #host: ContextHost
  readonly #shared: SharedLimits
  readonly #chunkStreams: ChunkStreams
  readonly #ofIsolate: Pick<
    Context,
    | 'carriedCalls'
    | 'openChunkStream'
    | 'coalesceSettlements'
    | 'evidence'
    | 'joinWindow'
    | 'keptAnswers'
    | 'lostAdmissions'
    | 'shared'
  >
  #common: { readonly settings: Settings; readonly context: CommonContext } | undefined

  constructor(env: Env, host: ContextHost) {
    this.#env = env
    this.#host = host
    this.#shared = openSharedLimits(host.now)
    this.#chunkStreams = openChunkStreams(env, {
      ...host,
      ended: (count) => host.log('link_chunks_ended', { count }),
    })
    this.#ofIsolate = {
      openChunkStream: this.#chunkStreams.open,
      carriedCalls: new CarriedCalls(host.link, host.now),
      coalesceSettlements: createCoalescer(host, SETTLEMENTS),
      evidence: new Evidence(host.link),
      joinWindow: openDirectWindow(host.now),
      keptAnswers: new KeptAnswers(host.now),
      lostAdmissions: new LostAdmissions({ ...host, pause }),
      shared: this.#shared,
    }
  }

  /** @param parts the same for each request; opened at the first one */
  build(settings: Settings, parts: StorageParts, request: RequestFacts): Context {
    const { requestId, client, key, permit, waitUntil } = request
    const { now } = this.#host
    this.#chunkStreams.prepare()
    const owner = key?.customerId ?? ''
    const turns = new RequestTurns(this.#shared.turns, owner, { now, pause })
    return {
      ...this.#commonContext(settings, parts),
      requestId,
      after: oneTimer(now),
      owner,
      presentedKey: key,
      client,
      inTurn: (cost, work) => turns.begin({ cost, client }, work),
      finishInTurn: (work) => turns.finish(work),
      yieldDuring: (wait) => turns.yieldDuring(wait),
      takeMemory: (bytes, ifRefused) => permit?.takeMemory(bytes, ifRefused),
      waitUntil,
    }
  }

  /** Built once for all requests under the same settings. */
  #commonContext(settings: Settings, parts: StorageParts): CommonContext {
    if (this.#common?.settings === settings) return this.#common.context
    const context: CommonContext = {
      ...settings,
      ...parts,
      ...this.#host,
      ...this.#ofIsolate,
      consolePage: this.#env.CONSOLE_PAGE,
      sendWebhook: (url, init) => (this.#env.WEBHOOKS ?? globalThis).fetch(url, init),
    }
    this.#common = { settings, context }
    return context
  }
}
