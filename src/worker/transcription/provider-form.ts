import { utf8, type Bytes } from '../../protocol/bytes.ts'
import type { Route } from '../provider/route.ts'
import { extensionOf } from './audio-type.ts'
import type { CheckedForm } from './request.ts'

/** A form for a provider; the `pieces`, in order, are its body. */
export interface ProviderForm {
  readonly contentType: string
  readonly pieces: readonly Bytes[]
}

/**
 * The form that is sent to a route (RFC 7578): the fields in docs/api.md, and the file under a neutral name, because the
 * client's file name may be confidential. Plain text is requested as JSON, which includes the duration: the price must not
 * depend on the response format.
 */
export function providerForm(parsed: CheckedForm, route: Route, boundary: string): ProviderForm {
  const { type } = parsed.audio
  const fields = {
    model: route.config.upstream_model,
    response_format: parsed.format === 'text' ? 'json' : parsed.format,
    language: parsed.language,
    prompt: parsed.prompt,
    temperature: parsed.temperature,
  }
  const parts = Object.entries(fields).map(([name, value]) =>
    value === undefined ? '' : `--${boundary}\r\n${disposition(name)}\r\n\r\n${value}\r\n`,
  )
  const fileHead = `${disposition('file')}; filename="audio.${extensionOf(type)}"\r\nContent-Type: ${type}`
  const head = `${parts.join('')}--${boundary}\r\n${fileHead}\r\n\r\n`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    pieces: [utf8(head), parsed.file.bytes, utf8(`\r\n--${boundary}--\r\n`)],
  }
}

function disposition(name: string): string {
  return `Content-Disposition: form-data; name="${name}"`
}
