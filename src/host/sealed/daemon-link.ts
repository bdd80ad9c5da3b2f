import { copyBytes } from '../../protocol/bytes.ts'
import { createLinkBinding, type LinkBinding } from '../stack/link-binding.ts'
import type { LinkCertificates } from '../stack/link-certificates.ts'

/** A document is answered once its secrets took effect: after a data disk was formatted, which takes up to ten minutes, and the
 * daemon adopted them behind captures of its own. The operator's command waits a little longer, to learn the reason. */
const ANSWER_MS = 800_000

export interface DaemonAnswer {
  readonly status: number
  readonly body: string
}

/** The supervisor's own access to the link, for requests that it makes instead of a worker. */
export interface DaemonLink {
  get(path: string): Promise<DaemonAnswer>
  post(path: string, body: Uint8Array): Promise<DaemonAnswer>
  close(): void
}

/** @param port of the daemon's link, known once the daemon has started */
export function createDaemonLink(
  link: LinkCertificates,
  port: () => number | undefined,
): DaemonLink {
  let binding: LinkBinding<Promise<DaemonAnswer>> | undefined
  const call = async (method: string, path: string, body: Uint8Array): Promise<DaemonAnswer> => {
    binding ??= createLinkBinding(
      {
        port: port() ?? 0,
        worker: link.worker,
        serverCertPem: link.server.certPem,
        answerMs: ANSWER_MS,
      },
      async (stream, { status }) => ({ status, body: await textOf(stream) }),
    )
    const arrayBuffer = async () => copyBytes(body).buffer
    return await binding.fetch({ url: `https://link${path}`, method, headers: {}, arrayBuffer })
  }
  return {
    get: (path) => call('GET', path, new Uint8Array()),
    post: (path, body) => call('POST', path, body),
    close: () => void binding?.close().catch(() => {}),
  }
}

async function textOf(stream: AsyncIterable<unknown> | null): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of stream ?? []) if (part instanceof Uint8Array) parts.push(part)
  return Buffer.concat(parts).toString('utf8')
}
