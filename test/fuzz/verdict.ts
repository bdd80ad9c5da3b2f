import type { WireAnswer, WireRequest } from './wire-request.ts'

/** The one status of the runtime itself: a method that it does not know. */
const UNKNOWN_METHOD = 501

/** What is wrong about an answer, whatever the request was; each with the request, to be sent again. */
export function faultsOf(request: WireRequest, answer: WireAnswer): string[] {
  return problemsOf(request, answer).map((problem) => `${problem}: ${inWords(request)}`)
}

function problemsOf(request: WireRequest, { status, head, body, hung }: WireAnswer): string[] {
  if (hung) return ['the router hung']
  if (status === 0) return request.leavesAfter === undefined ? ['there was no answer'] : []
  if (status >= 500 && status !== UNKNOWN_METHOD) return [`status ${status} ${codeIn(body)}`]
  // What is no HTTP the runtime refuses by itself.
  if (!head.includes('x-request-id: ')) {
    return status === 400 || status === UNKNOWN_METHOD
      ? []
      : ['an answer that the worker never gave']
  }
  if (status >= 400) return isErrorBody(body) || request.method === 'HEAD' ? [] : ['no error body']
  const streams = head.includes('content-type: text/event-stream')
  return streams && !body.endsWith('data: [DONE]\n\n') ? ['a stream without an end'] : []
}

function codeIn(body: string): string {
  return /"code":"(\w+)"/.exec(body)?.[1] ?? ''
}

function isErrorBody(body: string): boolean {
  return /^\{.*"error":\{"message":".+","type":"\w+","code":"\w+","param":/s.test(body)
}

/** Bodies are cut: the seed brings the whole of it back. */
function inWords({ kind, method, target, headers, body, leavesAfter }: WireRequest): string {
  const seen = body.toString('latin1').slice(0, 2_000)
  const left = leavesAfter === undefined ? [] : [`left after ${leavesAfter} of ${body.length}`]
  return JSON.stringify([kind, method, target, headers, seen, ...left])
}
