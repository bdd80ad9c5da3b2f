import { serveCompletions } from '../completion/handler.ts'
import { responsesFormat } from './encoder.ts'
import { parseResponsesRequest } from './request.ts'

/** POST /v1/responses, stateless: the whole conversation comes with each request. */
export const createResponse = serveCompletions({
  endpoint: '/v1/responses',
  decode: (body) => {
    const { chat, dropped, ...options } = parseResponsesRequest(body)
    return { chat, dropped, format: responsesFormat(options) }
  },
})
