/** A call that the router refused, with its answer. */
export class AdminCallFailed extends Error {
  readonly status: number
  readonly body: unknown

  constructor(status: number, body: unknown) {
    super(`the router answered ${status}`)
    this.name = 'AdminCallFailed'
    this.status = status
    this.body = body
  }
}

/** The router's admin interface: JSON in, JSON out, and text where an answer is text. */
export class AdminApi {
  readonly #baseUrl: string
  readonly #token: string

  constructor(baseUrl: string, token: string) {
    this.#baseUrl = baseUrl
    this.#token = token
  }

  /**
   * @throws AdminCallFailed when the answer is not a success
   * @throws TypeError when the router cannot be reached
   */
  async call(method: string, path: string, body?: Record<string, unknown>): Promise<unknown> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#token}` }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const answer = await fetch(this.#baseUrl + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    const value: unknown = text === '' ? {} : parse(text)
    if (!answer.ok) throw new AdminCallFailed(answer.status, value)
    return value
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
