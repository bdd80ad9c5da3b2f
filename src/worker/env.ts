import type { ChunkStreamsEnv } from './chunks/chunk-streams.ts'
import type { LinkBinding } from './link/link-calls.ts'
import type { Carried } from './routing/catalogue.ts'
import type { StorageEnv } from './storage/open.ts'

/**
 * The worker's bindings. Everything else (configuration, provider keys, the admin token) comes over the link, so that
 * a reload needs no restart and the runtime's configuration holds no secret but those of the link and of the drain.
 */
export interface Env extends StorageEnv, ChunkStreamsEnv {
  /** The enclave daemon, over mTLS pinned on both ends. */
  readonly LINK: LinkBinding
  /** The origin of `LINK`, for bindings that do not determine it themselves. */
  readonly LINK_ORIGIN?: string
  /** Whether calls to `LINK` are sent as messages over a connection that this runtime keeps open. */
  readonly LINK_TAKES_MESSAGES?: boolean
  /** Which providers the daemon calls; absent: attested ones. This runtime calls the others itself. */
  readonly DAEMON_CARRIES?: Carried
  /** Sends webhooks, over a network that reaches public addresses only; absent: the runtime's own network. */
  readonly WEBHOOKS?: { fetch(url: string, init: RequestInit): Promise<Response> }
  /** The operator's console, an HTML page; absent where the host provides none. */
  readonly CONSOLE_PAGE?: string
  /** Whether the console is a file, so that log lines may be written in batches. */
  readonly CONSOLE_IS_FILE?: boolean
  /** Whether the runtime omits waiting async functions from the stacks of errors (V8's `--no-async-stack-traces`). */
  readonly NO_ASYNC_STACKS?: boolean
  /** Maximum number of open requests of keyed endpoints; absent where the host limits them itself. */
  readonly MAX_OPEN_REQUESTS?: string
  /** The secret with which the supervisor authenticates a drain; absent where no supervisor stops this runtime. */
  readonly DRAIN_TOKEN?: string
}
