import type { LinkCertificates } from '../stack/link-certificates.ts'
import type { Supervisor } from '../stack/supervisor.ts'
import { startWebhookRounds } from '../stack/webhook-rounds.ts'
import { watchLiveness } from './liveness.ts'
import { probesOf } from './probes.ts'
import type { Start } from './start-plan.ts'

const LIVENESS = { everyMs: 5_000, misses: 6 }

export interface Watched {
  readonly supervisor: Supervisor
  readonly link: LinkCertificates
  readonly linkPort: () => number | undefined
  /** What is served; undefined while nothing is. */
  readonly serving: () => Start | undefined
  readonly log: (text: string) => void
}

/**
 * What goes on beside serving: parts that no longer answer are killed, and the first worker is asked for its webhooks.
 * @returns what ends it
 */
export function startWatchers({ supervisor, link, linkPort, serving, log }: Watched): () => void {
  const probes = probesOf(supervisor, link, linkPort)
  const watched = () => (serving() === undefined ? [] : probes.watched())
  const endLiveness = watchLiveness(watched, { ...LIVENESS, log })
  const endRounds = startWebhookRounds(() => reporter(supervisor, serving()))
  return () => {
    endLiveness()
    endRounds()
    probes.close()
  }
}

/** Where the first worker answers its supervisor alone. */
function reporter(supervisor: Supervisor, start: Start | undefined) {
  const port = supervisor.probes.get('worker')
  if (port === undefined || start?.config.config.service.webhooks === undefined) return undefined
  const { adminToken } = start
  return adminToken === null ? undefined : { baseUrl: `http://127.0.0.1:${port}`, adminToken }
}
