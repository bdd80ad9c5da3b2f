import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** The answers' schemas of the published description of the format. */
export const OPENAPI_SCHEMAS = new URL('../fixtures/openapi/schemas.json', import.meta.url)

/** Checks answers against the public schemas of the wire format. */
export interface SchemaCheck {
  /** A fetch that checks every answer it brings and keeps what is wrong. */
  readonly fetch: typeof fetch
  /** What was wrong so far, in words, and how many bodies and stream chunks were looked at. */
  result(): Promise<{ readonly problems: readonly string[]; readonly checked: number }>
}

const SCHEMAS: readonly { path: RegExp; schema: string; chunk?: string; segments?: string }[] = [
  {
    path: /^\/v1\/chat\/completions$/,
    schema: 'CreateChatCompletionResponse',
    chunk: 'CreateChatCompletionStreamResponse',
  },
  {
    path: /^\/v1\/audio\/transcriptions$/,
    schema: 'CreateTranscriptionResponseJson',
    segments: 'CreateTranscriptionResponseVerboseJson',
  },
  { path: /^\/v1\/models$/, schema: 'ListModelsResponse' },
  { path: /^\/v1\/models\/.+$/, schema: 'Model' },
]

export function createSchemaCheck(): SchemaCheck {
  const validators = compile()
  const problems: string[] = []
  const running: Promise<void>[] = []
  let checked = 0

  const check = (name: string, value: unknown) => {
    const validate = validators(name)
    checked += 1
    if (!validate(value)) problems.push(`${name}: ${JSON.stringify(validate.errors?.slice(0, 3))}`)
  }
  const checkAnswer = async (path: string, answer: Response) => {
    const text = await answer.text()
    const entry = SCHEMAS.find((candidate) => candidate.path.test(path))
    const type = answer.headers.get('content-type')?.split(';')[0]
    if (type === 'text/event-stream') {
      for (const chunk of chunksOf(text)) check(entry?.chunk ?? '', chunk)
    }
    if (type !== 'application/json') return
    const body: object = JSON.parse(text)
    if (!answer.ok) check('ErrorResponse', body)
    else if ('segments' in body) check(entry?.segments ?? '', body)
    else if (entry !== undefined) check(entry.schema, body)
  }
  return {
    result: async () => {
      await Promise.all(running)
      return { problems, checked }
    },
    fetch: async (input, init) => {
      const answer = await fetch(input, init)
      const url = new URL(input instanceof Request ? input.url : input)
      running.push(
        checkAnswer(url.pathname, answer.clone()).catch((error: unknown) => {
          problems.push(String(error))
        }),
      )
      return answer
    },
  }
}

function chunksOf(text: string): unknown[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]')
    .map((line) => JSON.parse(line.slice('data: '.length)) as unknown)
}

function compile(): (schema: string) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  const document: object = JSON.parse(readFileSync(OPENAPI_SCHEMAS, 'utf8'), withoutNullable)
  ajv.addSchema(document, 'openapi')
  return (schema) => {
    const validate = ajv.getSchema(`openapi#/components/schemas/${schema}`)
    if (validate === undefined) throw new Error(`no schema is named ${schema}`)
    return validate
  }
}

/** The document still has OpenAPI 3.0's `nullable`, which JSON Schema does not know. */
function withoutNullable(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('nullable' in value)) return value
  const { nullable, ...rest } = value
  return nullable === true ? { anyOf: [rest, { type: 'null' }] } : rest
}
