import * as z from 'zod'

/** The interface of this router for the holder of a token. */
export interface Api {
  /** @throws ApiFailure for every answer but 200 */
  json<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>>
  /** @throws ApiFailure for every answer but 200 */
  text(path: string): Promise<string>
}

/** The router refused or did not answer; `status` is 0 without an answer. */
export class ApiFailure extends Error {
  readonly status: number

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ApiFailure'
    this.status = status
  }
}

const errorSchema = z.object({ error: z.object({ message: z.string() }) })

export function createApi(token: string): Api {
  const get = async (path: string): Promise<string> => {
    let answer: Response
    try {
      answer = await fetch(path, {
        headers: { authorization: `Bearer ${token}` },
        cache: 'no-store',
        credentials: 'omit',
      })
    } catch (cause) {
      throw new ApiFailure(0, 'The router does not answer.', { cause })
    }
    const body = await answer.text()
    if (answer.status === 200) return body
    throw new ApiFailure(answer.status, messageOf(body) ?? `The router answers ${answer.status}.`)
  }
  return {
    text: get,
    json: async (path, schema) => schema.parse(JSON.parse(await get(path))),
  }
}

/** The message of an error answer in this interface's format; undefined for other answers. */
export function messageOf(body: string): string | undefined {
  try {
    return errorSchema.parse(JSON.parse(body)).error.message
  } catch {
    return undefined
  }
}
