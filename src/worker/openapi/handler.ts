import { z } from 'zod'
import { utf8 } from '../../protocol/bytes.ts'
import type { Handler } from '../context.ts'
import type { Operation } from '../http/operation.ts'
import { jsonText } from '../http/reply.ts'
import { openapiDocument, type DescribedEndpoint } from './document.ts'

export const OPENAPI_OPERATION: Operation = {
  summary: 'Describe this interface',
  tag: 'Operation',
  answer: {
    'application/json': { name: 'InterfaceDescription', schema: z.looseObject({}) },
  },
  errors: [],
}

/** GET /openapi.json. It is serialised at the first request, because most isolates never get one. */
export function describeInterface(endpoints: () => readonly DescribedEndpoint[]): Handler {
  let printed: { readonly name: string; readonly text: string } | undefined
  return async (_request, { config }) => {
    const { name } = config.service
    if (printed?.name !== name) {
      printed = { name, text: JSON.stringify(openapiDocument(endpoints(), name)) }
    }
    return jsonText(utf8(printed.text), { 'cache-control': 'public, max-age=300' })
  }
}
