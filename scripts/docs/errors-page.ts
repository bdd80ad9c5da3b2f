import { ERROR_GUIDE } from '../../src/worker/http/error-guide.ts'
import {
  ERROR_STATUS,
  ERROR_TYPES,
  publicCode,
  type ErrorCode,
} from '../../src/worker/http/errors.ts'

const HEAD = `# Errors

Every error has the form that OpenAI-format clients read, and \`x-request-id\` to ask the operator about:

\`\`\`json
{
  "error": {
    "message": "…",
    "type": "invalid_request_error",
    "code": "missing_field",
    "param": "model"
  }
}
\`\`\`

\`param\` is null where no member is at fault. A 429 always has \`Retry-After\` of at most 59 seconds, a 503 has it where a wait is
known. \`x-should-retry: false\` stands on a 401 and on a 5xx that the same request will meet again, and
on an error of which a part is billed, since that of a repetition would be, too. In a stream that has begun the error
is an event, and \`[DONE]\` does not follow it. No message ever holds a word of a prompt, an answer or a provider.

\`npm run docs\` writes this page from \`src/worker/http\`; a test sees that it is current.
`

/** The text of docs/errors.md, before the formatter has aligned its table. */
export function errorsPage(): string {
  const rows = Object.keys(ERROR_STATUS).filter(isErrorCode).map(rowOf)
  const table = [
    '| Status | Code | Type | Meaning | What to do |',
    '| --- | --- | --- | --- | --- |',
  ]
  return `${HEAD}\n${[...table, ...rows].join('\n')}\n`
}

function rowOf(code: ErrorCode): string {
  const status = ERROR_STATUS[code]
  const { means, remedy } = ERROR_GUIDE[code]
  return `| ${status} | \`${publicCode(code)}\` | \`${ERROR_TYPES[status]}\` | ${means} | ${remedy} |`
}

function isErrorCode(text: string): text is ErrorCode {
  return text in ERROR_STATUS
}
