import type { IncomingMessage, ServerResponse } from 'node:http'
import { makeHpkeKey, type HpkeKey } from '../../src/enclave/hpke/hpke-key.ts'
import { HpkeKeyring } from '../../src/enclave/hpke/hpke-keyring.ts'
import { EncryptedExchange } from '../../src/worker/ehbp/encrypted-exchange.ts'
import { errorReply } from '../../src/worker/http/reply.ts'
import { toApiError } from '../../src/worker/http/to-api-error.ts'
import { ehbpDeps, opening } from './ehbp-host.ts'

const HELLO = { choices: [], service: { receipt_id: '5f0c0b1e-0000-4000-8000-000000000000' } }

/** The encrypted side of a fake router: the real thing of the worker over a keyring of its own. */
export class FakeEhbp {
  #keyring: HpkeKeyring
  /** Bodies that were decrypted. */
  readonly opened: string[] = []
  /** What an encrypted request is answered with. */
  answer: () => Response = () => Response.json(HELLO)
  /** How the encrypted answer is changed in transit. */
  meddle: (answer: Response) => Response | Promise<Response> = (answer) => answer

  private constructor(first: HpkeKey) {
    this.#keyring = new HpkeKeyring(first, Date.now)
  }

  static async create(): Promise<FakeEhbp> {
    return new FakeEhbp(await makeHpkeKey())
  }

  get key(): HpkeKey {
    return this.#keyring.current
  }

  /** Uses only another key from now on. */
  swapKey(next: HpkeKey): void {
    this.#keyring = new HpkeKeyring(next, Date.now)
  }

  async serve(enc: string, request: IncomingMessage, response: ServerResponse, body: Buffer) {
    const exchange = new EncryptedExchange(
      enc,
      'a client',
      ehbpDeps(() => this.#keyring),
    )
    const init = { method: 'POST', body: new Uint8Array(body) }
    const asked = new Request(`https://router.test${request.url}`, init)
    const plain = await exchange.open(asked, opening(enc)).then(
      async (opened) => {
        this.opened.push(await opened.text())
        return this.answer()
      },
      (error: unknown) => errorReply(toApiError(error)),
    )
    const answer = await this.meddle(await exchange.seal(plain))
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.flushHeaders()
    if (answer.body === null) return response.end()
    try {
      for await (const chunk of answer.body) response.write(chunk)
      return response.end()
    } catch {
      return response.destroy()
    }
  }
}
