import { z } from 'zod'
import { fromUtf8 } from '../../protocol/bytes.ts'
import { formatNano, parseNano } from '../../protocol/money.ts'
import { readBody } from '../http/body.ts'
import { ApiError } from '../http/errors.ts'
import { issueText } from './issue-text.ts'

const MAX_BYTES = 65_536
const MAX_TEXT = 200

/** Maximum amount of one credit: nine of them fit the ledger's 64-bit integers. */
const MAX_NANO = parseNano('1000000000')

/** Text for people: not empty, no control characters. */
export const labelSchema = z
  .string()
  .max(MAX_TEXT)
  .regex(/^\P{Cc}+$/u, 'Give text that is not empty and has no control characters.')

const AMOUNT_EXPECTED = `Give euros as text with at most nine decimals, such as "5.00", up to ${formatNano(MAX_NANO)}.`

/** Euros as decimal text, read as nano-EUR; never negative. */
export const amountSchema = z.string(AMOUNT_EXPECTED).transform((text, check) => {
  const nano = nanoOf(text)
  if (nano !== undefined && nano >= 0n && nano <= MAX_NANO) return nano
  check.addIssue({ code: 'custom', message: AMOUNT_EXPECTED })
  return z.NEVER
})

/**
 * The JSON body of a request, checked by `schema`, and as it was given; an empty body counts as an empty object.
 * @throws ApiError `invalid_request_error`, naming the first invalid member; `request_too_large`
 */
export async function readJson<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
  { now }: { readonly now: () => number },
): Promise<{
  readonly value: z.output<Schema>
  readonly given: Readonly<Record<string, unknown>>
}> {
  const bytes = await readBody(request, { maxBytes: MAX_BYTES, tooLarge, now })
  const given = bytes.length === 0 ? {} : parseJson(bytes)
  const result = schema.safeParse(given, { error: issueText })
  if (result.success) return { value: result.data, given: memberSchema.parse(given) }
  const [issue] = result.error.issues
  throw new ApiError(
    'invalid_request_error',
    issue?.message ?? 'The body is not valid.',
    paramOf(issue),
  )
}

const memberSchema = z.record(z.string(), z.unknown())

const tooLarge = () => new ApiError('request_too_large', 'The request body is larger than 64 KiB.')

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(fromUtf8(bytes))
  } catch {
    throw new ApiError('invalid_request_error', 'The request body is not JSON.')
  }
}

function paramOf(issue: z.core.$ZodIssue | undefined): { readonly param?: string } {
  const path = issue?.code === 'unrecognized_keys' ? issue.keys : issue?.path
  const [name] = path ?? []
  return name === undefined ? {} : { param: String(name) }
}

function nanoOf(text: string): bigint | undefined {
  try {
    return parseNano(text)
  } catch {
    return undefined
  }
}
