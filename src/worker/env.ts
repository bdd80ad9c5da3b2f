import type { LinkBinding } from './link/http-link.ts'
import type { StorageEnv } from './storage/open.ts'

/**
 * The worker's bindings. Everything else (configuration, provider keys, the admin token) comes over the
 * link, so that a reload needs no restart and the runtime's configuration holds no secret but the link's own.
 */
export interface Env extends StorageEnv {
  /** The enclave daemon, over mTLS pinned on both ends. */
  readonly LINK: LinkBinding
  /** Where `LINK` leads, for bindings that do not know by themselves. */
  readonly LINK_ORIGIN?: string
  /** How many chat and transcription requests may be at work; absent where the host sees to that itself. */
  readonly MAX_OPEN_REQUESTS?: string
}
