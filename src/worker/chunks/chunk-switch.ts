import { REOPEN_MS } from '../calls/upgrade.ts'
import { ChunkConnection } from './chunk-connection.ts'
import type { PipeWriter, Seat } from './seat.ts'

/** What this needs of the object's stub. */
export interface ChunkStub {
  /** Opens the object's connection to the daemon. */
  open(): Promise<void>
  /** The end of a pipe whose other end the object gets under this name. */
  connect(
    name: string,
    options: { readonly allowHalfOpen: boolean },
  ): { readonly opened: Promise<unknown>; readonly readable: ReadableStream<Uint8Array> }
}

/** Answers with the end of a pipe, whose other end the object gets under the name that is the path. */
export interface ChunkPipes {
  fetch(url: string): Promise<Pick<Response, 'body'>>
}

export interface ChunkHost {
  /** Keeps the current request alive until this work has ended. */
  readonly keepAlive: (work: Promise<unknown>) => void
  /** Called when an open connection has ended, with the number of its open streams. */
  readonly ended: (streams: number) => void
}

/** For the URL of a pipe. */
const PIPES = 'http://pipes'

/**
 * Joins the requests of an isolate with the object in it to which the chunks of their streams come. Only for runtimes that keep the
 * object and all requests in one isolate.
 */
export class ChunkSwitch {
  readonly #now: () => number
  readonly #newId: () => string
  #connection: ChunkConnection | undefined
  /** Of the last request that had the object open a connection. */
  #ended: (streams: number) => void = () => {}
  #openedAt = Number.NEGATIVE_INFINITY
  /** Streams whose pipe the object is yet to get, by its name. */
  readonly #awaited = new Map<string, Seat>()

  constructor(now: () => number, newId: () => string) {
    this.#now = now
    this.#newId = newId
  }

  /** Has the object open its connection where there is none, for streams that come later. */
  prepare(stub: () => ChunkStub, { keepAlive, ended }: ChunkHost): void {
    if (this.#connection?.hasEnded === false) return
    const now = this.#now()
    if (Math.abs(now - this.#openedAt) < REOPEN_MS) return
    this.#openedAt = now
    this.#ended = ended
    // Chunks come over HTTP while there is no connection.
    keepAlive(
      stub()
        .open()
        .catch(() => {}),
    )
  }

  /** A seat for a stream of the current request; undefined while there is no connection. */
  seat(pipes: ChunkPipes): Seat | undefined {
    const connection = this.#connection
    if (connection === undefined || connection.hasEnded) return undefined
    const seat: Seat = connection.seat((stream) => {
      const name = `${connection.id}.${stream}`
      return () => this.#openPipe(name, seat, pipes)
    })
    return seat
  }

  async #openPipe(
    name: string,
    seat: Seat,
    pipes: ChunkPipes,
  ): Promise<ReadableStream<Uint8Array>> {
    this.#awaited.set(name, seat)
    try {
      const { body } = await pipes.fetch(`${PIPES}/${name}`)
      if (body === null) throw new Error('internal error: no end of a pipe')
      return body
    } catch (error) {
      this.#awaited.delete(name)
      seat.cut()
      throw error
    }
  }

  /** For the object, which has just been made: the connection of an instance before it is lost. */
  reset(): void {
    this.#connection?.end()
    this.#awaited.clear()
  }

  /** For the object: a connection that it is about to open. */
  begin(): ChunkConnection {
    this.#connection?.end()
    return new ChunkConnection(this.#newId(), (streams) => this.#ended(streams))
  }

  /** For the object: the connection is open. */
  offer(connection: ChunkConnection): void {
    this.#connection = connection
  }

  /** For the object: serves the stream of that name over its end of the pipe. */
  async serve(name: string, writer: PipeWriter, left: Promise<void>): Promise<void> {
    const seat = this.#awaited.get(name)
    this.#awaited.delete(name)
    if (seat === undefined) throw new Error('internal error: a pipe that nobody has opened')
    const leave = () => seat.leave()
    left.then(leave, leave)
    await seat.serve(writer)
  }
}
