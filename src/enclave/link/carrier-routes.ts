import { LINK_PATHS, type LinkState } from '../../protocol/link.ts'
import { LinkError } from '../link-error.ts'
import { parseEgressTarget, type Egress } from '../open-egress.ts'
import { createReceiptSigner, type SignerDeps } from '../sign/receipt-signer.ts'
import { jsonAnswer, readJson } from './answer.ts'
import type { LinkRoute } from './dispatch.ts'

const MAX_SIGN_BYTES = 1_048_576

/** The dependencies of the routes that serve client requests. */
export interface CarrierSubject {
  readonly state: () => Omit<LinkState, 'thread'>
  /** The id of this thread; a new one after each start. */
  readonly thread: string
  readonly signer: SignerDeps
  readonly egress: Egress
}

/** The routes that carry requests and sign their receipts. Each thread that does so serves them to its own workers. */
export function createCarrierRoutes({
  state,
  thread,
  signer,
  egress,
}: CarrierSubject): readonly LinkRoute[] {
  const signReceipts = createReceiptSigner(signer)
  return [
    {
      method: 'GET',
      path: LINK_PATHS.state,
      handle: async () => jsonAnswer({ thread, ...state() }),
    },
    {
      method: 'POST',
      path: LINK_PATHS.sign,
      handle: async ({ body }) =>
        jsonAnswer(await signReceipts(await readJson(body, MAX_SIGN_BYTES))),
    },
    {
      method: 'DELETE',
      path: LINK_PATHS.streams,
      below: true,
      handle: async ({ rest }) => {
        const record = egress.endStream(rest.slice(1))
        if (record === undefined) throw new LinkError('not_found', 'no such stream')
        return jsonAnswer(record)
      },
    },
    {
      method: 'any',
      path: LINK_PATHS.waiting,
      below: true,
      async relay({ rest }, _request, response) {
        egress.sendWaiting(rest.slice(1), response)
      },
    },
    {
      method: 'any',
      path: LINK_PATHS.egress,
      below: true,
      async relay({ url, rest }, request, response) {
        const target = parseEgressTarget(rest, url.search)
        await egress.carry({ ...target, request, response })
      },
    },
  ]
}
