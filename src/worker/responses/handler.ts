import { serveCompletions } from '../completion/handler.ts'
import { ResponsesEncoder, responseBody } from './encoder.ts'
import { parseResponsesRequest } from './request.ts'

/** What the answer repeats of the request is held as values, and written twice into the first events of a stream. */
const ECHO_COPIES = 4

/** POST /v1/responses, stateless: the whole conversation comes with each request. */
export const createResponse = serveCompletions({
  endpoint: '/v1/responses',
  decode: (body) => {
    const { chat, dropped, ...options } = parseResponsesRequest(body)
    return {
      chat,
      dropped,
      format: {
        idPrefix: 'resp_',
        echoBytes: ECHO_COPIES * JSON.stringify(options.echo).length,
        streamEncoder: (head) => new ResponsesEncoder(head, options),
        wholeBody: (answer, head, usage, service) =>
          responseBody(answer, head, usage, service, options),
      },
    }
  },
})
