import { peerAddress } from '../../protocol/peer-address.ts'
import type { AttemptClock } from './attempt-clock.ts'
import { AttemptFailure } from './failure.ts'

/** Opens a connection to a host and closes it again. Resolves once it is established, rejects when it cannot be. */
export type ProbeConnect = (address: { hostname: string; port: number }) => Promise<void>

/**
 * The connect timeout of a direct call. The runtime does not report when a connection is established, and an answer
 * that is not streamed may legitimately take minutes. So when there is no answer after `ms`, a second connection to
 * the host is opened as a probe, and the call is aborted unless the probe succeeds within `ms` too.
 * @returns a function that ends the watch; an answer in time costs one timer
 */
export function watchConnect(
  url: string,
  ms: number,
  clock: AttemptClock,
  probeConnect: ProbeConnect,
): () => void {
  let ended = false
  const giveUp = () => {
    if (!ended) clock.abort(new AttemptFailure({ kind: 'timeout', unanswered: true }))
  }
  let timer = clock.after(ms, () => {
    timer = clock.after(ms, giveUp)
    const { host: hostname, port } = peerAddress(url)
    probeConnect({ hostname, port }).then(() => timer.stop(), giveUp)
  })
  return () => {
    ended = true
    timer.stop()
  }
}
