import type { AttemptClock } from './attempt-clock.ts'
import { AttemptFailure } from './failure.ts'

/** Opens a connection to a host and closes it again; resolves once it stands, rejects when it cannot. */
export type ProbeConnect = (address: { hostname: string; port: number }) => Promise<void>

/**
 * The connect clock of a direct call. The runtime does not tell when a connection stands, and a synchronous
 * answer may rightly be silent for minutes; so a call still silent after `ms` has its host reached a second
 * time on the side, and is given up when that does not succeed within `ms` either. Answers a function that
 * ends the watch; a call that is answered in time pays for one timer.
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
  let timer = setTimeout(() => {
    timer = setTimeout(giveUp, ms)
    probeConnect(addressOf(url)).then(() => clearTimeout(timer), giveUp)
  }, ms)
  return () => {
    ended = true
    clearTimeout(timer)
  }
}

function addressOf(url: string): { hostname: string; port: number } {
  const { hostname, port, protocol } = new URL(url)
  const standard = protocol === 'https:' ? 443 : 80
  return { hostname: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? standard : Number(port) }
}
