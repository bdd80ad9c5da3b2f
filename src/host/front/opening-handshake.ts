import type { Socket } from 'node:net'
import { HandshakeWatch } from './handshake-watch.ts'

export interface HandshakeEvents {
  /** The client has finished its handshake. */
  readonly finished: () => void
  /**
   * The worker has ended or reset the connection before it answered anything. `sent` is everything that the client has
   * sent; its connection is paused and has no listeners of this module any more.
   */
  readonly unanswered: (sent: Buffer) => void
}

/**
 * Most bytes kept of a client whose worker has not answered. A ClientHello takes 2 KiB, and a TLS record 16 KiB at
 * most.
 */
const MAX_KEPT_BYTES = 16 * 1024

/** The content type of the TLS records of a handshake (RFC 8446 section 5.1). */
const HANDSHAKE = 22

/**
 * Relays the beginning of a TLS handshake, starting with the bytes `first`, and keeps them until the worker answers.
 * Until then the connection can be handed to another worker: a ClientHello has no effect other than its answer, and
 * there was none. Records of application data (early data after a ClientHello) may hold a request that the worker has
 * acted on, so nothing is kept from the first such record on.
 * @param relay called once when the connection cannot be handed to another worker any more: it must relay everything
 *   from then on
 * @returns a function that must be called before the worker's first bytes are passed on
 */
export function relayOpening(
  client: Socket,
  worker: Socket,
  first: Buffer,
  { finished, unanswered }: HandshakeEvents,
  relay: () => void,
): () => void {
  const watch = new HandshakeWatch()
  let sent: Buffer[] | undefined = [first]
  let length = first.length
  const stop = () => {
    sent = undefined
    client.off('end', leave).off('close', leave)
    worker.off('end', desert).off('error', desert)
  }
  const leave = () => {
    stop()
    worker.resetAndDestroy()
    client.destroy()
  }
  const desert = () => {
    const whole = Buffer.concat(sent ?? [])
    stop()
    worker.destroy()
    client.off('data', take).pause()
    unanswered(whole)
  }
  const handOver = () => {
    if (sent === undefined) return
    stop()
    relay()
  }
  const look = (bytes: Buffer) => {
    if (watch.take(bytes)) {
      client.off('data', take)
      finished()
      handOver()
    } else if (length > MAX_KEPT_BYTES) handOver()
  }
  const take = (bytes: Buffer) => {
    if (sent !== undefined) {
      worker.write(bytes)
      sent.push(bytes)
      length += bytes.length
    }
    look(bytes)
  }
  client.on('end', leave).on('close', leave).on('data', take)
  worker.on('end', desert).on('error', desert)
  look(first)
  if (first[0] !== HANDSHAKE) handOver()
  else client.resume()
  return handOver
}
