import { REOPEN_MS } from '../calls/upgrade.ts'
import { ChunkConnection } from './chunk-connection.ts'
import type { PipeWriter, ChunkStream } from './chunk-stream.ts'

/** The part of the object's stub that this module uses. */
export interface ChunkStub {
  /** Opens the object's connection to the daemon. */
  open(): Promise<void>
  /** Opens a pipe. Returns one end; the object gets the other end under this name. */
  connect(
    name: string,
    options: { readonly allowHalfOpen: boolean },
  ): { readonly opened: Promise<unknown>; readonly readable: ReadableStream<Uint8Array> }
}

/** Answers with one end of a pipe; the object gets the other end under the name in the URL's path. */
export interface ChunkPipes {
  fetch(url: string): Promise<Pick<Response, 'body'>>
}

export interface ChunkHost {
  /** Keeps the current request alive until this work has ended. */
  readonly keepAlive: (work: Promise<unknown>) => void
  /** Called when an open connection has ended, with the number of its open streams. */
  readonly ended: (streams: number) => void
}

/** The origin of the pipes' URLs; only the path matters. */
const PIPES = 'http://pipes'

/**
 * Connects the requests of an isolate with the object that receives the chunks of their streams. Only for runtimes that keep
 * the object and all requests in one isolate.
 */
export class ChunkSwitch {
  readonly #now: () => number
  readonly #newId: () => string
  #connection: ChunkConnection | undefined
  /** The callback of the last request that made the object open a connection. */
  #ended: (streams: number) => void = () => {}
  #openedAt = Number.NEGATIVE_INFINITY
  /** The streams whose pipe the object has not received yet, by the pipe's name. */
  readonly #awaited = new Map<string, ChunkStream>()

  constructor(now: () => number, newId: () => string) {
    this.#now = now
    this.#newId = newId
  }

  /** Makes the object open its connection, if there is none, for later streams. */
  prepare(stub: () => ChunkStub, { keepAlive, ended }: ChunkHost): void {
    if (this.#connection?.hasEnded === false) return
    const now = this.#now()
    if (Math.abs(now - this.#openedAt) < REOPEN_MS) return
    this.#openedAt = now
    this.#ended = ended
    // A failure is ignored: while there is no connection, chunks come over HTTP.
    keepAlive(
      stub()
        .open()
        .catch(() => {}),
    )
  }

  /** Opens a stream for the current request; undefined while there is no connection. */
  openStream(pipes: ChunkPipes): ChunkStream | undefined {
    const connection = this.#connection
    if (connection === undefined || connection.hasEnded) return undefined
    const chunkStream: ChunkStream = connection.openStream((stream) => {
      const name = `${connection.id}.${stream}`
      return () => this.#openPipe(name, chunkStream, pipes)
    })
    return chunkStream
  }

  async #openPipe(
    name: string,
    chunkStream: ChunkStream,
    pipes: ChunkPipes,
  ): Promise<ReadableStream<Uint8Array>> {
    this.#awaited.set(name, chunkStream)
    try {
      const { body } = await pipes.fetch(`${PIPES}/${name}`)
      if (body === null) throw new Error('internal error: no end of a pipe')
      return body
    } catch (error) {
      this.#awaited.delete(name)
      chunkStream.cut()
      throw error
    }
  }

  /** For a new instance of the object: the previous instance's connection is lost. */
  reset(): void {
    this.#connection?.end()
    this.#awaited.clear()
  }

  /** For the object: makes a connection, to be opened. */
  begin(): ChunkConnection {
    this.#connection?.end()
    return new ChunkConnection(this.#newId(), (streams) => this.#ended(streams))
  }

  /** For the object: makes an open connection available to requests. */
  offer(connection: ChunkConnection): void {
    this.#connection = connection
  }

  /** For the object: writes the stream of that name to its end of the pipe. */
  async serve(name: string, writer: PipeWriter, left: Promise<void>): Promise<void> {
    const chunkStream = this.#awaited.get(name)
    this.#awaited.delete(name)
    if (chunkStream === undefined) throw new Error('internal error: a pipe that nobody has opened')
    const leave = () => chunkStream.leave()
    left.then(leave, leave)
    await chunkStream.serve(writer)
  }
}
