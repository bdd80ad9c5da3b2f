import { DurableObject } from 'cloudflare:workers'
import { LINK_PATHS } from '../../protocol/link.ts'
import { upgrade, type UpgradeTarget } from '../calls/upgrade.ts'
import { BOUND_ORIGIN } from '../link/link-calls.ts'
import type { ChunkSwitch } from './chunk-switch.ts'

/** The bindings through which the connection is opened. */
interface ChunkEnv {
  readonly LINK: UpgradeTarget['binding']
  readonly LINK_ORIGIN?: string
}

/**
 * The class of the object that receives the chunks of all streams of this isolate over one connection and writes each to the
 * pipe of its request. It exists because a connection belongs to the request or object that opened it, and other requests
 * can only call an object. It stores nothing.
 * @param now ms since the epoch
 */
export function makeChunkObject(chunkSwitch: ChunkSwitch, now: () => number) {
  return class ChunkObject extends DurableObject<ChunkEnv> {
    #isOpening = false

    constructor(ctx: DurableObjectState, env: ChunkEnv) {
      super(ctx, env)
      chunkSwitch.reset()
    }

    /**
     * Opens the connection, unless it is being opened.
     * @throws Error when the daemon does not accept it
     */
    async open(): Promise<void> {
      if (this.#isOpening) return
      this.#isOpening = true
      try {
        const connection = chunkSwitch.begin()
        const { LINK: binding, LINK_ORIGIN = BOUND_ORIGIN } = this.env
        const url = `${LINK_ORIGIN}${LINK_PATHS.chunks}/${connection.id}`
        const socket = await upgrade({ binding, url }, now)
        this.ctx.waitUntil(connection.run(socket))
        chunkSwitch.offer(connection)
      } finally {
        this.#isOpening = false
      }
    }

    override async connect(socket: Socket): Promise<void> {
      const { localAddress } = await socket.opened
      const name = localAddress?.split(':')[0] ?? ''
      await chunkSwitch.serve(name, socket.writable.getWriter(), socket.closed)
    }
  }
}
