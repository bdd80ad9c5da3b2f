import { z } from 'zod'
import { LINK_PATHS, linkStateSchema } from '../../protocol/link.ts'
import { unsealAnswerSchema } from '../../protocol/unseal.ts'
import { errorFormatAt, writeError } from '../../worker/http/error-format.ts'
import { ERROR_STATUS, errorBody, ApiError, type ErrorCode } from '../../worker/http/errors.ts'
import type { DaemonAnswer, DaemonLink } from './daemon-link.ts'

export interface Reply {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

const PUBLIC = { 'access-control-allow-origin': '*' } as const

/** When clients should retry a sealed router, seconds. */
const RETRY = { 'retry-after': '5' } as const

const HEX_32 = /^[0-9a-f]{64}$/

/** The answers of a sealed router: its evidence, the error that it is sealed, and the result of an unseal document. */
export interface SealedAnswers {
  get(url: URL, source: string): Promise<Reply>
  unseal(document: Uint8Array): Promise<Reply>
}

export function createSealedAnswers(link: DaemonLink): SealedAnswers {
  const routes: Readonly<Record<string, (url: URL, source: string) => Promise<Reply>>> = {
    '/attestation': (url, source) => attestation(link, url, source),
    '/.well-known/trust.json': async () => passOn(await link.get(LINK_PATHS.trust)),
    '/.well-known/jwks.json': async () => keySet(await link.get(LINK_PATHS.state)),
    '/healthz': async () => health(await link.get(LINK_PATHS.unseal)),
  }
  return {
    get: async (url, source) =>
      Object.hasOwn(routes, url.pathname)
        ? ((await routes[url.pathname]?.(url, source)) ?? sealed())
        : sealed(url.pathname),
    unseal: async (document) => outcomeOf(await link.post(LINK_PATHS.unseal, document)),
  }
}

/** The answer to every request that a sealed router does not serve. */
export function sealed(path = '/'): Reply {
  const error = new ApiError('sealed', 'This router waits for its secrets.')
  const { status, body } = writeError(error, errorFormatAt(path))
  return { status, body: JSON.stringify(body), headers: { ...PUBLIC, ...RETRY } }
}

async function attestation(link: DaemonLink, url: URL, source: string): Promise<Reply> {
  const nonce = url.searchParams.get('nonce')
  if (nonce !== null && !HEX_32.test(nonce)) {
    return errorReply('invalid_parameter', 'The nonce must be 64 lowercase hex digits.')
  }
  const query = nonce === null ? '' : `?${new URLSearchParams({ nonce, source }).toString()}`
  const answer = await link.get(`${LINK_PATHS.attestation}${query}`)
  if (answer.status === 429) {
    return errorReply('rate_limit_exceeded', 'Too many attestations were asked for.')
  }
  if (answer.status === 200) return passOn(answer)
  const body = JSON.stringify({ error: 'attestation_unavailable' })
  return { status: 503, body, headers: { ...PUBLIC, ...RETRY } }
}

function passOn({ status, body }: DaemonAnswer): Reply {
  return status === 200 ? { status, body, headers: PUBLIC } : sealed()
}

function keySet({ status, body }: DaemonAnswer): Reply {
  if (status !== 200) return sealed()
  const { jwk } = linkStateSchema.parse(JSON.parse(body))
  return { status: 200, body: JSON.stringify({ keys: [jwk] }), headers: PUBLIC }
}

const refusedSchema = z.object({ refused: z.record(z.string(), z.int()) })

function health({ status, body }: DaemonAnswer): Reply {
  const counted = status === 200 ? refusedSchema.parse(JSON.parse(body)).refused : {}
  const text = JSON.stringify({ status: 'sealed', unseal_refused: counted })
  return { status: 503, body: text, headers: { ...PUBLIC, ...RETRY } }
}

function outcomeOf({ status, body }: DaemonAnswer): Reply {
  if (status !== 200) return sealed()
  const answer = unsealAnswerSchema.parse(JSON.parse(body))
  if (answer.outcome === 'accepted') return { status: 200, body: JSON.stringify(answer) }
  return errorReply('unseal_refused', answer.message, { reason: answer.reason })
}

function errorReply(
  code: ErrorCode,
  message: string,
  members: Readonly<Record<string, string>> = {},
): Reply {
  const body = JSON.stringify(errorBody(new ApiError(code, message, { members })))
  const status = ERROR_STATUS[code]
  return { status, body, headers: { ...PUBLIC, ...(status >= 429 ? RETRY : {}) } }
}
