import * as z from 'zod'
import { isBearerToken } from '../../protocol/bearer-token.ts'

/** Who is signed in. */
export interface Session {
  readonly name: string
  readonly scope: string
  /** RFC 3339. */
  readonly expires_at: string | null
}

/** The admin API of the router that served the page. The session cookie is HttpOnly: no script can read it. */
export interface Api {
  /** @throws ApiFailure for every status but 200, and for an answer that does not match the schema */
  json<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>>
  /** The browser's current session. @throws ApiFailure when there is none */
  session(): Promise<Session>
  /** Starts a session; the token is not stored. @throws ApiFailure */
  signIn(token: string): Promise<Session>
  /** @throws ApiFailure */
  signOut(): Promise<void>
}

/** The router refused the request or did not answer; `status` is 0 when there was no answer. */
export class ApiFailure extends Error {
  readonly status: number

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ApiFailure'
    this.status = status
  }
}

const errorSchema = z.object({ error: z.object({ message: z.string() }) })
const sessionSchema = z.object({
  name: z.string(),
  scope: z.string(),
  expires_at: z.string().nullable(),
})

/** CSRF protection: a page of another origin cannot send this header. */
const OWN_PAGE = { 'x-cmr-console': '1' }

const SESSION_PATH = '/admin/session'

export const API: Api = {
  json: (path, schema) => ask('GET', path, schema),
  session: () => ask('GET', SESSION_PATH, sessionSchema),
  signIn: async (text) => {
    const token = text.trim()
    if (!isBearerToken(token)) throw new ApiFailure(401, 'This is not a token.')
    return ask('POST', SESSION_PATH, sessionSchema, { authorization: `Bearer ${token}` })
  },
  signOut: async () => {
    await ask('DELETE', SESSION_PATH, z.unknown())
  },
}

/** The answer of an endpoint that needs no token. @throws ApiFailure */
export function readPublic<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.output<Schema>> {
  return ask('GET', path, schema)
}

async function ask<Schema extends z.ZodType>(
  method: string,
  path: string,
  schema: Schema,
  headers: Readonly<Record<string, string>> = {},
): Promise<z.output<Schema>> {
  const { status, text } = await send(method, path, { ...OWN_PAGE, ...headers })
  if (status !== 200) {
    throw new ApiFailure(status, messageOf(text) ?? `The router answers ${status}.`)
  }
  const parsed = schema.safeParse(parse(text))
  if (parsed.success) return parsed.data
  throw new ApiFailure(status, 'The answer of the router cannot be read.')
}

async function send(method: string, path: string, headers: Readonly<Record<string, string>>) {
  try {
    const init = { method, headers, cache: 'no-store', credentials: 'same-origin' } as const
    const answer = await fetch(path, init)
    return { status: answer.status, text: await answer.text() }
  } catch (cause) {
    throw new ApiFailure(0, 'The router does not answer.', { cause })
  }
}

/** The message of an error answer; undefined when the text is not in the error format of the admin API. */
export function messageOf(text: string): string | undefined {
  return errorSchema.safeParse(parse(text)).data?.error.message
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
