import { z } from 'zod'
import { ERROR_WRITERS, type ErrorFormat } from '../http/error-format.ts'
import { ERROR_GUIDE } from '../http/error-guide.ts'
import { errorSchema } from '../http/error-schema.ts'
import { publicCode, type ErrorCode } from '../http/errors.ts'
import type { NamedSchema, Operation } from '../http/operation.ts'
import { answerHeaders, errorHeaders } from './answer-headers.ts'

/** The part of an endpoint that the description needs. */
export interface DescribedEndpoint {
  readonly method: string
  /** The path, with `:name` for parameters. */
  readonly path: string
  readonly name: string
  readonly audience: 'public' | 'keyed' | 'admin'
  readonly operation: Operation
  /** The error format; OpenAI's unless given. */
  readonly errors?: ErrorFormat
}

type Json = Readonly<Record<string, unknown>>

/** Errors that every endpoint of an audience can answer with. */
const COMMON_ERRORS: Readonly<Record<DescribedEndpoint['audience'], readonly ErrorCode[]>> = {
  public: ['internal', 'service_unavailable'],
  keyed: ['sealed', 'unauthorized', 'key_expired', 'internal', 'service_unavailable'],
  admin: [
    'unauthorized',
    'session_ended',
    'insufficient_scope',
    'cross_site_request',
    'internal',
    'service_unavailable',
  ],
}

/** Further error codes where the body is encrypted with EHBP. */
const ENCRYPTION_ERRORS: readonly ErrorCode[] = ['invalid_encryption', 'key_config_mismatch']

/** How requests authenticate. For admin tokens the required scope is named, as OpenAPI 3.1 allows for roles. */
const SECURITY: Readonly<
  Record<DescribedEndpoint['audience'], (operation: Operation) => readonly Json[]>
> = {
  public: () => [],
  keyed: () => [{ apiKey: [] }],
  admin: ({ scope }) => {
    const scopes = scope === undefined ? [] : [scope]
    return [{ adminToken: scopes }, { consoleSession: scopes }]
  },
}

const ERROR: NamedSchema = { name: 'Error', schema: errorSchema }

const ANTHROPIC_ERROR: NamedSchema = {
  name: 'MessagesError',
  schema: z.looseObject({
    type: z.literal('error'),
    error: z.looseObject({ type: z.string(), message: z.string() }),
  }),
}

/** The schemas of the errors of each format. */
const ERROR_SCHEMAS = {
  openai: ERROR,
  responses: ERROR,
  anthropic: ANTHROPIC_ERROR,
} as const satisfies Record<ErrorFormat, NamedSchema>

/** The interface description in OpenAPI 3.1, built from the schemas that check requests. */
export function openapiDocument(endpoints: readonly DescribedEndpoint[], name: string): Json {
  const paths: Record<string, Record<string, Json>> = {}
  const schemas = new Map<string, Json>()
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)[+?]?/g, '{$1}')
    const item = (paths[path] ??= {})
    item[endpoint.method.toLowerCase()] = operationOf(endpoint, path, schemas)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: name,
      version: '1',
      description: 'One OpenAI-format API in front of attested model providers.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: Object.fromEntries(schemas),
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key.' },
        adminToken: { type: 'http', scheme: 'bearer', description: "The operator's token." },
        consoleSession: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-cmr_console',
          description: 'A session of the console, for its own page alone.',
        },
      },
    },
  }
}

function operationOf(endpoint: DescribedEndpoint, path: string, schemas: Map<string, Json>): Json {
  const { operation, audience, errors: format = 'openai' } = endpoint
  const parameters = [...pathParameters(path, operation), ...otherParameters(operation)]
  const { body } = operation
  return {
    operationId: endpoint.name.replaceAll(/\.(\w)/g, (_dot, letter: string) =>
      letter.toUpperCase(),
    ),
    summary: operation.summary,
    tags: [operation.tag],
    security: SECURITY[audience](operation),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: true,
        content: { [body.mediaType]: { schema: reference(body.content, 'input', schemas) } },
      },
    }),
    responses: {
      '200': {
        description: 'OK',
        headers: answerHeaders(format, operation),
        content: Object.fromEntries(
          Object.entries(operation.answer).map(([type, content]) => [
            type,
            { schema: reference(content, 'output', schemas) },
          ]),
        ),
      },
      ...errorResponses(
        [
          ...operation.errors,
          ...COMMON_ERRORS[audience],
          ...(body !== undefined && audience === 'keyed' ? ENCRYPTION_ERRORS : []),
        ],
        endpoint,
        schemas,
      ),
    },
  }
}

function pathParameters(path: string, operation: Operation): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const description = operation.path?.[name]
    const described = description === undefined ? {} : { description }
    return { name, in: 'path', required: true, schema: { type: 'string' }, ...described }
  })
}

function otherParameters({ query = {}, headers = {} }: Operation): Json[] {
  return [
    ...Object.entries(query).map(([name, { schema, description }]) => {
      return { name, in: 'query', description, schema }
    }),
    ...Object.entries(headers).map(([name, { schema, description }]) => {
      return { name, in: 'header', description, schema: jsonSchema(schema, 'input') }
    }),
  ]
}

/** One response for each status, which lists its possible codes. */
function errorResponses(
  codes: readonly ErrorCode[],
  { errors: format = 'openai', operation }: DescribedEndpoint,
  schemas: Map<string, Json>,
): Json {
  const byStatus = Map.groupBy(codes, ERROR_WRITERS[format].statusOf)
  const schema = reference(ERROR_SCHEMAS[format], 'output', schemas)
  const responses = [...byStatus].map(([status, those]) => {
    const lines = those.map((code) => `\`${publicCode(code)}\`: ${ERROR_GUIDE[code].means}`)
    const description = lines.join('\n\n')
    const headers = errorHeaders(status, format, operation)
    return [status, { description, headers, content: { 'application/json': { schema } } }] as const
  })
  return Object.fromEntries(responses)
}

function reference(
  { name, schema }: NamedSchema,
  io: 'input' | 'output',
  schemas: Map<string, Json>,
): Json {
  if (!schemas.has(name)) schemas.set(name, jsonSchema(schema, io))
  return { $ref: `#/components/schemas/${name}` }
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}
