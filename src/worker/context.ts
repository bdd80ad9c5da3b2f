import type { RouterConfig } from '../protocol/config.ts'
import type { Log } from './http/log.ts'
import type { Link } from './link/link.ts'
import type { Catalogue } from './routing/catalogue.ts'
import type { RouteHealth } from './routing/health.ts'
import type { Storage } from './storage/database.ts'

/** Everything a handler may touch, built anew for each request. Deeper steps get only the parts they need. */
export interface Context {
  /** UUID v4; also `x-request-id`, the idempotency key of settlement and the id of the usage row. */
  readonly requestId: string
  readonly config: RouterConfig
  readonly catalogue: Catalogue
  readonly health: RouteHealth
  readonly storage: Storage
  readonly link: Link
  readonly adminToken: string
  readonly log: Log
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** A new UUID v4. */
  readonly newId: () => string
  /** Keeps the request's work alive after its response has ended. */
  readonly waitUntil: (work: Promise<unknown>) => void
}

/** One endpoint. `params` are the decoded path parameters of its pattern. */
export type Handler = (
  request: Request,
  context: Context,
  params: Readonly<Record<string, string>>,
) => Promise<Response>
