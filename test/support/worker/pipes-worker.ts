import { DurableObject } from 'cloudflare:workers'
import type { ChunkStub } from '../../../src/worker/chunks/chunk-switch.ts'
import { openPipeEnd } from '../../../src/worker/chunks/open-pipe-end.ts'
import { utf8 } from '../../../src/protocol/bytes.ts'
import type { ObjectNamespace } from '../../../src/worker/storage/object-call.ts'

/** A worker that passes pipes on to its clients, and says how many of their sockets it still has. */

type Chunks = ObjectNamespace<Pick<ChunkStub, 'connect'>>

interface PipesEnv {
  readonly CHUNKS: Chunks
  readonly PIPES: { fetch(url: string): Promise<Response> }
}

declare global {
  /** Collects garbage (V8's `--expose-gc`). */
  function gc(): void
}

const sockets: WeakRef<object>[] = []

/** The namespace, with each socket that it opens noted. */
function noting(chunks: Chunks): Chunks {
  return {
    idFromName: (name) => chunks.idFromName(name),
    get: (id) => ({
      connect: (name, options) => {
        const socket = chunks.get(id).connect(name, options)
        sockets.push(new WeakRef(socket))
        return socket
      },
    }),
  }
}

export class ChunkObject extends DurableObject {
  override async connect(socket: Socket): Promise<void> {
    const writer = socket.writable.getWriter()
    await writer.write(utf8('all'))
    await writer.close()
  }
}

export class StoreObject extends DurableObject {}
export class PostgresPool extends DurableObject {}

export const pipes = {
  fetch: async ({ url }: Request, { CHUNKS }: PipesEnv) =>
    new Response(await openPipeEnd(url, noting(CHUNKS))),
}

async function countHeld(): Promise<Response> {
  for (let round = 0; round < 3; round += 1) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const held = sockets.filter((socket) => socket.deref() !== undefined)
  return Response.json({ opened: sockets.length, held: held.length })
}

// oxlint-disable-next-line import/no-default-export -- workerd takes a worker from its default export
export default {
  fetch({ url }: Request, { PIPES }: PipesEnv): Promise<Response> {
    const { pathname } = new URL(url)
    return pathname === '/held' ? countHeld() : PIPES.fetch(`http://pipes${pathname}`)
  },
}
