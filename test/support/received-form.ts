import type { IncomingHttpHeaders } from 'node:http'
import type { Standin } from './standin.ts'

export interface ReceivedForm {
  readonly headers: IncomingHttpHeaders
  readonly fields: Readonly<Record<string, string>>
  readonly files: readonly {
    readonly name: string
    readonly fileName: string
    readonly type: string
    readonly bytes: Buffer
  }[]
}

/** The form that the stand-in provider received last, taken apart by Node's own parser. */
export async function receivedForm(standin: Standin): Promise<ReceivedForm> {
  const { request } = (await standin.exchanges()).at(-1) ?? {}
  if (request === undefined) throw new Error('the provider received nothing')
  const type = request.headers['content-type'] ?? ''
  const body = Buffer.from(request.base64, 'base64')
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  const fields: Record<string, string> = {}
  const files: ReceivedForm['files'][number][] = []
  for (const [name, value] of form) {
    if (typeof value === 'string') fields[name] = value
    else
      files.push({
        name,
        fileName: value.name,
        type: value.type,
        bytes: Buffer.from(await value.arrayBuffer()),
      })
  }
  return { headers: request.headers, fields, files }
}
