import { LINK_PATHS } from '../../protocol/link.ts'
import { LEDGER_PATHS } from '../../protocol/ledger-link.ts'
import { createLinkBinding, type LinkBinding, type LinkEnd } from '../stack/link-binding.ts'
import type { Supervisor } from '../stack/supervisor.ts'
import type { Watched } from './liveness.ts'

const RESPONSE_TIMEOUT_MS = 4_000

/** The health checks of each part. */
export interface Probes {
  /** The parts that are running. */
  watched(): readonly Watched[]
  close(): void
}

/** The carriers, which are further threads of the daemon. */
export interface WatchedCarriers {
  readonly links: () => readonly LinkEnd[]
  /** Terminates the thread that listens on this port; the daemon starts it again. */
  readonly end: (port: number) => void
}

export interface ProbedLinks {
  readonly daemonLink: () => LinkEnd | undefined
  readonly carriers: WatchedCarriers
  readonly ledgerLink: () => LinkEnd | undefined
}

type Probed = Pick<Supervisor, 'probes' | 'isUp' | 'killWorker' | 'killEnclave' | 'killLedger'>

/** Workers are probed on a socket of their own, the daemon's threads and the ledger process over their links. */
export function probesOf(
  supervisor: Probed,
  { daemonLink, carriers, ledgerLink }: ProbedLinks,
): Probes {
  const bindings = new Map<string, LinkBinding<{ status: number }>>()

  const probeLink = async (name: string, link: LinkEnd, path: string): Promise<string> => {
    const binding =
      bindings.get(name) ?? createLinkBinding(link, (_body, { status }) => ({ status }))
    bindings.set(name, binding)
    const request = { url: `https://link${path}`, method: 'GET', headers: {} }
    const { status } = await within(binding.fetch({ ...request, arrayBuffer: noBody }))
    return word(status)
  }

  const watchedLink = (
    name: string,
    link: LinkEnd | undefined,
    path: string,
    kill: () => void,
  ): Watched[] =>
    link === undefined ? [] : [{ name, probe: () => probeLink(name, link, path), kill }]

  return {
    watched: () => {
      const up = [...supervisor.probes].filter(([name]) => supervisor.isUp(name))
      const workers = up.map(([name, probe]) => ({
        name,
        probe: () => probeWorker(probe),
        kill: () => supervisor.killWorker(name),
      }))
      const daemon = supervisor.isUp('enclave') ? daemonLink() : undefined
      const threads = daemon === undefined ? [] : carriers.links()
      const ledger = supervisor.isUp('ledger') ? ledgerLink() : undefined
      return [
        ...workers,
        ...watchedLink('enclave', daemon, LINK_PATHS.state, () => supervisor.killEnclave()),
        ...threads.flatMap((link, index) =>
          watchedLink(`carrier-${index + 1}`, link, LINK_PATHS.state, () =>
            carriers.end(link.port),
          ),
        ),
        ...watchedLink('ledger', ledger, LEDGER_PATHS.health, () => supervisor.killLedger()),
      ]
    },
    close: () => {
      for (const binding of bindings.values()) void binding.close().catch(() => {})
    },
  }
}

async function probeWorker(port: number): Promise<string> {
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS)
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { signal })
  await answer.body?.cancel()
  return word(answer.status)
}

async function noBody(): Promise<ArrayBuffer> {
  return new ArrayBuffer(0)
}

function word(status: number): string {
  return status === 200 ? 'ok' : `is not healthy: status ${status}`
}

async function within<T>(answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('no answer')), RESPONSE_TIMEOUT_MS)
  try {
    return await Promise.race([answer, promise])
  } finally {
    clearTimeout(timer)
  }
}
