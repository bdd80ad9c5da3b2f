import type { Socket } from 'node:net'
import { StageClock } from '../../worker/stream/stage-clock.ts'
import { ConnectFailure, connectFailureKind, type ConnectFailureKind } from './connect-failure.ts'

/** How long a connection may take. */
export interface ConnectTime {
  /** Ms, in time in which this process ran. */
  readonly connectMs: number
  /** Ms. */
  readonly now: () => number
}

/**
 * Waits until a socket that is being opened can be used; nothing is sent.
 * @param event tells that it can
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
      // While a request uses the socket it handles errors itself; between requests the socket's end is sufficient.
      socket.on('error', () => {})
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}
