import type { Socket } from 'node:net'
import { StageClock } from '../../worker/stream/stage-clock.ts'
import { ConnectFailure, connectFailureKind, type ConnectFailureKind } from './connect-failure.ts'

/** The time limit for opening a connection. */
export interface ConnectTime {
  /** Ms; only time in which this process ran counts. */
  readonly connectMs: number
  /** Ms. */
  readonly now: () => number
}

/**
 * Waits until a socket that is being opened is usable; nothing is sent.
 * @param event the event that says so
 * @throws ConnectFailure when that does not happen in time; the socket is destroyed
 */
export function established<Opened extends Socket>(
  socket: Opened,
  event: 'connect' | 'secureConnect',
  { connectMs, now }: ConnectTime,
): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const fail = (kind: ConnectFailureKind, cause?: unknown) => {
      socket.destroy()
      reject(new ConnectFailure(kind, { cause }))
    }
    const clock = new StageClock(now, () => fail('timeout'))
    clock.enter(connectMs)
    const onError = (cause: NodeJS.ErrnoException) => {
      clock.stop()
      fail(connectFailureKind(cause), cause)
    }
    socket.once('error', onError)
    socket.once(event, () => {
      clock.stop()
      socket.off('error', onError)
      // While a request uses the socket, the request handles errors; between requests, `close` is enough.
      socket.on('error', () => {})
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}
