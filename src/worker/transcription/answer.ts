import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { jsonText, text } from '../http/reply.ts'
import type { Exchange } from '../settle/exchange.ts'
import type { TranscriptionRequest } from './request.ts'
import { transcriptionService } from './admitted.ts'
import type { Transcript } from './transcript.ts'

/** An answer before it is sent: the exact body, so that it can be hashed, and its headers. */
export interface Answer {
  readonly body: Bytes
  readonly toResponse: (rateLimitHeaders: Readonly<Record<string, string>>) => Response
}

/**
 * The answer in the requested format (see docs/api.md). Duration and language are the provider's; where it reported none,
 * they are `measuredSeconds` and the client's hint.
 */
export function makeAnswer(
  parsed: TranscriptionRequest,
  transcript: Transcript & { readonly measuredSeconds: number | undefined },
  exchange: Exchange,
  receiptId: string | null,
): Answer {
  if (parsed.format === 'text') return textAnswer(transcript.text, exchange, receiptId)
  const language = transcript.language ?? parsed.language
  const duration = transcript.seconds ?? transcript.measuredSeconds
  const { segments, words } = transcript
  const body = utf8(
    JSON.stringify({
      text: transcript.text,
      ...(language !== undefined && { language }),
      ...(duration !== undefined && { duration }),
      ...(parsed.format === 'verbose_json' && { segments }),
      ...(parsed.format === 'verbose_json' && words.length > 0 && { words }),
      service: transcriptionService(exchange, receiptId),
    }),
  )
  return { body, toResponse: (headers) => jsonText(body, headers) }
}

/** A plain-text answer. It cannot contain `service`, so headers carry a part of it. */
function textAnswer(transcript: string, exchange: Exchange, receiptId: string | null): Answer {
  const body = utf8(transcript)
  const service = {
    'x-service-routed-model': exchange.route.id,
    ...(receiptId !== null && { 'x-service-receipt-id': receiptId }),
  }
  return { body, toResponse: (headers) => text(body, { ...headers, ...service }) }
}
