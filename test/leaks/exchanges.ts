import type { Stack } from '../support/stack.ts'
import { formBytes, BOUNDARY } from '../support/transcription-stack.ts'
import { wav } from '../support/audio-samples.ts'
import { LEAK_MODELS } from './provider.ts'
import { MARKERS } from './markers.ts'

/** Requests of every kind, good and bad, with a marker at every place a client can put a text. */

/** An answer as far as it is scanned. */
export interface Answered {
  readonly asked: string
  readonly status: number
  /** Headers and body. */
  readonly text: string
}

const MESSAGES = [
  { role: 'system', content: MARKERS.system },
  { role: 'user', content: MARKERS.prompt },
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      {
        id: 'call_0',
        type: 'function',
        function: { name: 'look', arguments: JSON.stringify({ at: MARKERS.toolArguments }) },
      },
    ],
  },
  { role: 'tool', tool_call_id: 'call_0', content: MARKERS.toolArguments },
]
const TOOLS = [
  {
    type: 'function',
    function: { name: 'look', description: MARKERS.toolArguments, parameters: { type: 'object' } },
  },
]
const HEADERS = {
  'user-agent': MARKERS.clientHeader,
  'x-request-id': MARKERS.clientHeader,
  cookie: `session=${MARKERS.clientHeader}`,
  referer: `https://example.test/${MARKERS.clientHeader}`,
}

function chatBody(model: string, more: object = {}): string {
  return JSON.stringify({
    model,
    messages: MESSAGES,
    tools: TOOLS,
    user: MARKERS.member,
    metadata: { note: MARKERS.member },
    [MARKERS.member]: MARKERS.member,
    ...more,
  })
}

interface Asked {
  readonly name: string
  readonly path: string
  readonly init?: RequestInit
  /** Leaves after the first bytes. */
  readonly leaves?: boolean
}

function chat(name: string, body: string, headers: object = {}): Asked {
  const path = '/v1/chat/completions'
  return { name, path, init: { method: 'POST', body, headers: { ...HEADERS, ...headers } } }
}

function upload(name: string, parts: Parameters<typeof formBytes>[0], end?: string): Asked {
  const headers = { ...HEADERS, 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }
  const init = { method: 'POST', headers, body: formBytes(parts, end) }
  return { name, path: '/v1/audio/transcriptions', init }
}

const SOUND_FILE = {
  name: 'file',
  fileName: `${MARKERS.fileName}.wav`,
  type: 'audio/wav',
  content: Buffer.concat([wav(1).bytes, Buffer.from(MARKERS.file)]),
}
const NO_SOUND = { ...SOUND_FILE, content: MARKERS.file }
const WHISPER = { name: 'model', content: 'whisper' }
const PROMPT = { name: 'prompt', content: MARKERS.prompt }

/** What an admin token and what a customer's key is needed for. */
export function exchanges(adminToken: string): readonly Asked[] {
  const admin = { ...HEADERS, authorization: `Bearer ${adminToken}` }
  const adminCall = (path: string, body: object | string, method = 'POST'): Asked => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return { name: `${method} ${path}`, path, init: { method, headers: admin, body: text } }
  }
  return [
    // Those that do not end have little time; the sound one has as much as a busy machine takes.
    ...LEAK_MODELS.map((model) =>
      chat(
        `${model}, whole`,
        chatBody(model),
        model === 'sound' ? {} : { 'x-service-timeout-seconds': '2' },
      ),
    ),
    ...LEAK_MODELS.map((model) => chat(`${model}, stream`, chatBody(model, { stream: true }))),
    { ...chat('a client that leaves', chatBody('endless', { stream: true })), leaves: true },
    chat('failover', chatBody('status-500', { failover: ['sound'] })),
    chat('no receipt', chatBody('sound'), { 'x-service-receipt': 'false' }),
    chat('an unknown model', chatBody(MARKERS.model)),
    chat('an unknown alternative', chatBody('sound', { failover: [MARKERS.model] })),
    chat('an unknown effort', chatBody('sound', { reasoning: MARKERS.prompt })),
    chat('a wrong type', chatBody('sound', { temperature: MARKERS.prompt })),
    chat('no JSON', `{"messages": "${MARKERS.prompt}`),
    chat('no object', JSON.stringify([MARKERS.prompt])),
    chat('a wrong time', chatBody('sound'), { 'x-service-timeout-seconds': MARKERS.clientHeader }),
    chat('a wrong option', chatBody('sound'), { 'x-service-receipt': MARKERS.clientHeader }),
    chat('a wrong encoding', chatBody('sound'), { 'content-encoding': MARKERS.clientHeader }),
    chat('a wrong key', chatBody('sound'), { authorization: `Bearer ${MARKERS.wrongKey}` }),
    chat('a wrong scheme', chatBody('sound'), { authorization: `${MARKERS.wrongKey} x` }),
    upload('a sound file', [WHISPER, PROMPT, SOUND_FILE]),
    upload('no sound', [WHISPER, PROMPT, NO_SOUND]),
    upload('an unknown model', [{ name: 'model', content: MARKERS.model }, SOUND_FILE]),
    upload('a wrong form', [WHISPER, { name: 'language', content: MARKERS.prompt }, SOUND_FILE]),
    upload('a second model', [WHISPER, WHISPER, SOUND_FILE, PROMPT]),
    upload('a cut form', [WHISPER, PROMPT, SOUND_FILE], ''),
    { name: 'a path', path: `/v1/${MARKERS.path}` },
    { name: 'a model path', path: `/v1/models/${MARKERS.path}` },
    { name: 'a receipt path', path: `/v1/receipts/${MARKERS.path}` },
    { name: 'an evidence path', path: `/v1/receipts/${MARKERS.path}/evidence` },
    { name: 'an envelope path', path: `/attestation/${MARKERS.path}` },
    { name: 'a query', path: `/v1/usage?start=${MARKERS.query}&${MARKERS.query}=1` },
    { name: 'a model query', path: `/v1/models?type=${MARKERS.query}` },
    { name: 'a nonce', path: `/attestation?nonce=${MARKERS.query}` },
    { name: 'a method', path: '/v1/usage', init: { method: 'PUT', body: MARKERS.prompt } },
    adminCall('/admin/customers', { name: 'x', billing: MARKERS.adminBody }),
    adminCall('/admin/customers', `{"name": "${MARKERS.adminBody}`),
    adminCall('/admin/customers', { [MARKERS.adminBody]: 1 }),
    adminCall(`/admin/customers/${MARKERS.path}/credits`, { amount_eur: MARKERS.adminBody }),
    adminCall('/admin/maintenance', { now: MARKERS.adminBody }),
    adminCall(`/admin/customers/${MARKERS.path}/keys/${MARKERS.path}`, '', 'DELETE'),
  ]
}

export async function exchange(
  stack: Stack,
  { name, path, init, leaves }: Asked,
): Promise<Answered> {
  const answer = await stack.fetch(path, init)
  // This header names those of the caller's own members that were dropped.
  const others = [...answer.headers].filter(([header]) => header !== 'x-service-dropped-members')
  const headers = JSON.stringify(others)
  if (!leaves) return { asked: name, status: answer.status, text: headers + (await answer.text()) }
  const reader = answer.body?.getReader()
  await reader?.read()
  await reader?.cancel()
  return { asked: name, status: answer.status, text: headers }
}
