import { LINK_PATHS } from '../../protocol/link.ts'
import { createLinkBinding, type LinkBinding } from '../stack/link-binding.ts'
import type { LinkCertificates } from '../stack/link-certificates.ts'
import type { Supervisor } from '../stack/supervisor.ts'
import type { Watched } from './liveness.ts'

const RESPONSE_TIMEOUT_MS = 4_000

/** The health checks of each part. */
export interface Probes {
  watched(): readonly Watched[]
  close(): void
}

/** Workers are probed on a socket of their own, the daemon over the link. */
export function probesOf(
  supervisor: Supervisor,
  link: LinkCertificates,
  linkPort: () => number | undefined,
): Probes {
  let binding: LinkBinding<{ status: number }> | undefined

  const probeDaemon = async (port: number): Promise<string> => {
    binding ??= createLinkBinding(
      { port, worker: link.worker, serverCertPem: link.server.certPem },
      (_body, { status }) => ({ status }),
    )
    const request = { url: `https://link${LINK_PATHS.state}`, method: 'GET', headers: {} }
    const { status } = await within(binding.fetch({ ...request, arrayBuffer: noBody }))
    return word(status)
  }

  return {
    watched: () => {
      const port = linkPort()
      const workers = [...supervisor.probes].map(([name, probe]) => ({
        name,
        probe: () => probeWorker(probe),
        kill: () => supervisor.killWorker(name),
      }))
      const kill = () => supervisor.killEnclave()
      return port === undefined
        ? workers
        : [...workers, { name: 'enclave', probe: () => probeDaemon(port), kill }]
    },
    close: () => void binding?.close().catch(() => {}),
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
