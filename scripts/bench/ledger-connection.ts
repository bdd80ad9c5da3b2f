import { Agent, request } from 'node:https'
import type { LinkEnd } from '../../src/host/stack/link-binding.ts'

/** One connection to a ledger process, pinned on both ends as that of a worker. */
export class LedgerConnection {
  readonly #agent: Agent
  readonly #link: LinkEnd

  constructor(link: LinkEnd) {
    this.#link = link
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 1,
      ca: link.serverCertPem,
      cert: link.worker.certPem,
      key: link.worker.keyPem,
      minVersion: 'TLSv1.3',
      maxCachedSessions: 0,
    })
  }

  /**
   * Makes a call, and returns the body of its answer.
   * @throws Error when the connection is lost or the answer is no 200
   */
  call(path: string, body: string): Promise<string> {
    const { port, host: servername } = this.#link
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const headers = {
      host: 'ledger',
      'content-length': Buffer.byteLength(body),
      'content-type': 'text/plain;charset=UTF-8',
    }
    const where = { host: '127.0.0.1', port, servername, agent: this.#agent }
    const sent = request({ ...where, path, headers, method: 'POST' }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(Buffer.concat(chunks).toString())
        else reject(new Error(`status ${answer.statusCode}`))
      })
    })
    sent.on('error', reject)
    sent.end(body)
    return promise
  }

  close(): void {
    this.#agent.destroy()
  }
}
