import type { z } from 'zod'
import { ApiError } from '../http/errors.ts'

/** A request member that a schema checks. */
export class CheckedMember<Schema extends z.ZodType> {
  readonly #name: string
  readonly #schema: Schema
  readonly #expected: string

  /** @param expected completes "must be …" */
  constructor(name: string, schema: Schema, expected: string) {
    this.#name = name
    this.#schema = schema
    this.#expected = expected
  }

  /**
   * The checked value.
   * @throws ApiError invalid_request_error that names the place but never quotes the value
   */
  read(value: unknown, at: string = this.#name): z.output<Schema> {
    const result = this.#schema.safeParse(value)
    if (result.success) return result.data
    throw new ApiError('invalid_request_error', `"${at}" must be ${this.#expected}.`, { param: at })
  }

  /** Like `read`, for a member that may be absent. */
  optional(value: unknown): z.output<Schema> | undefined {
    return value === undefined ? undefined : this.read(value)
  }
}
