import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { gatherCrowd } from '../support/crowd.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'

/** The attacks by name. Each runs until it is stopped, and ignores the answers. */

/** Where an attack goes, and as whom. */
export interface Assault {
  readonly baseUrl: string
  /** The key of a customer of its own; strangers leave it unused. */
  readonly key: string
  readonly ends: AbortSignal
  /** Called for each request with its status, or `none` if no answer came. */
  readonly count: (status: number | 'none') => void
}

type Attack = (assault: Assault) => Promise<void>

const CHAT = '/v1/chat/completions'
const MESSAGES = [{ role: 'user', content: 'Hello.' }]
const MIB = 1024 * 1024

/** Models of the attackers' own provider: one answers as it should, the other means harm. */
export const ATTACKED_MODELS = { sound: 'flooded', hostile: 'hostile' } as const

/** No hand does more than this, so that attackers of a router and of something quicker work about as hard. */
const PACE_MS = 40

/** Repeats a deed with so many hands. */
async function flood(
  hands: number,
  { ends, count }: Assault,
  deed: () => Promise<number | undefined>,
  paceMs = PACE_MS,
): Promise<void> {
  const one = async () => {
    while (!ends.aborted) {
      const next = delay(paceMs)
      count((await deed().catch(() => undefined)) ?? 'none')
      await next
    }
  }
  await Promise.all(Array.from({ length: hands }, one))
}

interface Question {
  readonly path: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Leaves when this is over instead of waiting for the answer. */
  readonly leavesAfterMs?: number
}

/** Floods with one question, or with a new one each time. */
function flooding(
  hands: number,
  questionOf: (assault: Assault) => Question,
  paceMs = PACE_MS,
): Attack {
  return async (assault) => {
    const pool = new Pool(assault.baseUrl, { connections: hands })
    const ask = async () => {
      const { path, method = 'GET', headers = {}, body, leavesAfterMs } = questionOf(assault)
      const leaves = leavesAfterMs === undefined ? [] : [AbortSignal.timeout(leavesAfterMs)]
      const answer = await pool.request({
        path,
        method,
        headers: { authorization: `Bearer ${assault.key}`, ...headers },
        signal: AbortSignal.any([assault.ends, ...leaves]),
        ...(body !== undefined && { body }),
      })
      await answer.body.dump({ limit: 64 * MIB })
      return answer.statusCode
    }
    await flood(hands, assault, ask, paceMs)
    await pool.destroy()
  }
}

function always(question: Question): () => Question {
  return () => question
}

function chat(more: object, headers: Readonly<Record<string, string>> = {}): Question {
  const body = JSON.stringify({ model: ATTACKED_MODELS.sound, messages: MESSAGES, ...more })
  return { path: CHAT, method: 'POST', headers, body }
}

/** A form with a sound file that is none. */
function upload(bytes: number): Question {
  const part = (name: string, more: string) =>
    `--siege\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`
  const head = `${part('model', '')}whisper\r\n${part('file', '; filename="a.mp3"')}`
  const body = Buffer.concat([
    Buffer.from(head),
    Buffer.alloc(bytes, 0xff),
    Buffer.from('\r\n--siege--\r\n'),
  ])
  const headers = { 'content-type': 'multipart/form-data; boundary=siege' }
  return { path: '/v1/audio/transcriptions', method: 'POST', headers, body }
}

/** Requests whose bodies do not come, opened again as they are closed. */
function trickling(hands: number, byKey: boolean): Attack {
  return async (assault) => {
    const { baseUrl, key, ends } = assault
    const authorization: Record<string, string> = byKey ? { authorization: `Bearer ${key}` } : {}
    const head = rawRequest('POST', CHAT, { ...authorization, 'content-length': 1_000_000 }, '{')
    await flood(hands, assault, async () => {
      const client = await RawClient.connect(baseUrl)
      client.send(head)
      while (!client.closed && !ends.aborted && client.received === '') await delay(100)
      client.leave()
      return Number(/^HTTP\/1\.1 (\d+)/.exec(client.received)?.[1] ?? Number.NaN) || undefined
    })
  }
}

/** Silent connections, for as long as it lasts. */
async function crowd({ baseUrl, ends, count }: Assault): Promise<void> {
  const from = Array.from({ length: 20 }, (_, index) => `127.0.7.${index + 1}`)
  const silent = await gatherCrowd({ port: Number(new URL(baseUrl).port), count: 2_000, from })
  while (!ends.aborted) {
    await delay(100)
  }
  count('none')
  silent.leave()
}

const nonce = () => crypto.getRandomValues(Buffer.alloc(32)).toString('hex')

/** A POST whose body says that it is encrypted (EHBP), which it is not. */
function falselyEncrypted(headers: Readonly<Record<string, string>> = {}): Question {
  const body = Buffer.alloc(64 * 1024, 1)
  return {
    path: CHAT,
    method: 'POST',
    headers: { ...headers, 'ehbp-encapsulated-key': nonce() },
    body,
  }
}

function post(path: string, more: object): Question {
  return { path, method: 'POST', body: JSON.stringify({ model: ATTACKED_MODELS.sound, ...more }) }
}

const long = 'x'.repeat(MIB)

/** Of customers, who each have a key of their own. The first five are those of a siege. */
export const CUSTOMER_ATTACKS = {
  chats: flooding(16, always(chat({}))),
  reads: flooding(8, always({ path: '/v1/usage?limit=1000' })),
  leaves: flooding(8, always({ ...chat({ stream: true }), leavesAfterMs: 20 })),
  'large-bodies': flooding(
    2,
    always(chat({ messages: [{ role: 'user', content: 'x'.repeat(4 * MIB) }] })),
  ),
  'slow-bodies': trickling(40, true),
  streams: flooding(16, always(chat({ stream: true }))),
  /** Finds the old rows that a siege can be given. */
  filters: flooding(16, always({ path: '/v1/usage?model=direct/whole&limit=1000' })),
  models: flooding(16, always({ path: '/v1/models' })),
  receipts: flooding(16, always({ path: `/v1/receipts/${crypto.randomUUID()}` })),
  uploads: flooding(2, always(upload(8 * MIB))),
  'bad-requests': flooding(16, always({ path: CHAT, method: 'POST', body: '{' })),
  /** One answer again and again. */
  replays: flooding(16, always(chat({}, { 'idempotency-key': 'siege' }))),
  /** New secrets under its own customer id, each of which has to be looked up. */
  'wrong-secrets': flooding(16, ({ key }) => {
    const secret = nonce().slice(0, 40)
    return { path: '/v1/key', headers: { authorization: `Bearer ${key.slice(0, -40)}${secret}` } }
  }),
  encrypted: flooding(8, () => falselyEncrypted()),
  responses: flooding(
    2,
    always(post('/v1/responses', { stream: true, instructions: long, input: 'Hello.' })),
  ),
  'count-tokens': flooding(
    2,
    always(
      post('/v1/messages/count_tokens', { messages: [{ role: 'user', content: long.repeat(4) }] }),
    ),
  ),
  exports: flooding(8, always({ path: '/v1/usage', headers: { accept: 'text/csv' } })),
} satisfies Readonly<Record<string, Attack>>

/** Of people without a key, and of a provider, which a customer of its own asks. */
export const OTHER_ATTACKS = {
  silence: crowd,
  'slow-strangers': trickling(40, false),
  nonces: flooding(4, () => ({ path: `/attestation?nonce=${nonce()}` })),
  health: flooding(1_200, always({ path: '/healthz' }), 1_000),
  'false-keys': flooding(16, () => ({
    path: '/v1/models',
    headers: { authorization: `Bearer cmr_${nonce().slice(0, 20)}_${nonce().slice(0, 8)}_x` },
  })),
  'encrypted-strangers': flooding(16, () => falselyEncrypted({ authorization: 'Bearer x' })),
  provider: flooding(
    4,
    always(chat({ model: ATTACKED_MODELS.hostile }, { 'x-service-timeout-seconds': '5' })),
  ),
} satisfies Readonly<Record<string, Attack>>

export const ATTACKS: Readonly<Record<string, Attack>> = { ...CUSTOMER_ATTACKS, ...OTHER_ATTACKS }
