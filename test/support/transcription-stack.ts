import { startStack, type Stack } from './stack.ts'

/** Models by what they are used to test, on providers of the stand-in. */
const ROUTES = [
  route('whisper', 'nova', { billing_unit: 'audio_minute', unit_amount: 0.6 }, { region: 'eu' }),
  route('whisper', 'vela', { billing_unit: 'audio_minute', unit_amount: 1.2 }, { region: 'us' }),
  route('rests', 'nova', { billing_unit: 'request', unit_amount: 0.05 }),
  route('rests', 'vela', { billing_unit: 'request', unit_amount: 0.05 }),
  route('by-second', 'nova', { billing_unit: 'audio_second', unit_amount: 0.01 }),
  route('by-request', 'nova', { billing_unit: 'request', unit_amount: 0.05 }),
  route('by-token', 'nova', { input_per_mtok: 100, output_per_mtok: 1000 }),
  route('strict', 'nova', undefined, {
    pricing: { currency: 'eur', billing_unit: 'request', unit_amount: 1 },
    audio: { max_bytes: 1_000, mime_types: ['audio/wav', 'audio/mpeg'] },
  }),
  route('unpriced', 'nova', undefined),
  { ...route('glm', 'nova', { input_per_mtok: 1, output_per_mtok: 1 }), type: 'chat' },
]

function route(model: string, provider: string, pricing?: object, more: object = {}) {
  return {
    model_key: model,
    provider,
    upstream_model: `upstream-${model}`,
    type: 'transcription',
    ...(pricing === undefined ? {} : { pricing: { currency: 'eur', ...pricing } }),
    ...more,
  }
}

function standinProvider(name: string) {
  return {
    base_url: `http://standin.localhost/${name}/v1`,
    attestation: { adapter: 'none' },
  }
}

/** A stack with a transcription model for every way of billing, and for every limit. */
export function startTranscriptionStack(): Promise<Stack> {
  return startStack({
    config: {
      service: { name: 'router', mode: 'local', timeouts: { transcription_ms: 5_000 } },
      providers: { nova: standinProvider('nova'), vela: standinProvider('vela') },
      routes: ROUTES,
    },
  })
}

/** One part of a form, with the file name that makes it a file. */
export interface Part {
  readonly name: string
  readonly content: string | Buffer
  readonly fileName?: string
  readonly type?: string
}

export const BOUNDARY = 'boundary-of-the-test'

/** The exact bytes of a form. */
export function formBytes(
  parts: readonly Part[],
  end = `--${BOUNDARY}--\r\n`,
): Buffer<ArrayBuffer> {
  const pieces = parts.flatMap(({ name, content, fileName, type }) => [
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"`),
    Buffer.from(fileName === undefined ? '' : `; filename="${fileName}"`),
    Buffer.from(`${type === undefined ? '' : `\r\nContent-Type: ${type}`}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(end)])
}

/** Posts bytes as a form. */
export function post(stack: Stack, body: BodyInit, headers: Record<string, string> = {}) {
  const type = `multipart/form-data; boundary=${BOUNDARY}`
  return stack.fetch('/v1/audio/transcriptions', {
    method: 'POST',
    headers: { 'content-type': type, ...headers },
    body,
  })
}
