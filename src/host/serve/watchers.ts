import type { LinkEnd } from '../stack/link-binding.ts'
import type { Supervisor } from '../stack/supervisor.ts'
import { startWebhookRounds } from '../stack/webhook-rounds.ts'
import { watchLiveness } from './liveness.ts'
import { probesOf, type WatchedCarriers } from './probes.ts'
import type { Start } from './start-plan.ts'

const LIVENESS = { everyMs: 5_000, misses: 6 }

export interface Watched {
  readonly supervisor: Supervisor
  readonly daemonLink: () => LinkEnd | undefined
  readonly carriers: WatchedCarriers
  readonly ledgerLink: () => LinkEnd | undefined
  /** Whether running parts must answer: the router serves, or waits for its secrets. */
  readonly upright: () => boolean
  /** The start that is being served; undefined while there is none. */
  readonly serving: () => Start | undefined
  readonly log: (text: string) => void
}

/**
 * Background tasks of a serving router: kills parts that no longer answer, and triggers webhook rounds on the first
 * worker.
 * @returns a function that stops them
 */
export function startWatchers({
  supervisor,
  daemonLink,
  carriers,
  ledgerLink,
  upright,
  serving,
  log,
}: Watched): () => void {
  const probes = probesOf(supervisor, { daemonLink, carriers, ledgerLink })
  const watched = () => (upright() ? probes.watched() : [])
  const endLiveness = watchLiveness(watched, { ...LIVENESS, log })
  const endRounds = startWebhookRounds(() => reporter(supervisor, serving()))
  return () => {
    endLiveness()
    endRounds()
    probes.close()
  }
}

/** The address of the first worker's probe port, and the admin token. */
function reporter(supervisor: Supervisor, start: Start | undefined) {
  const port = supervisor.probes.get('worker')
  if (port === undefined || start?.config.config.service.webhooks === undefined) return undefined
  const { adminToken } = start
  return adminToken === null ? undefined : { baseUrl: `http://127.0.0.1:${port}`, adminToken }
}
