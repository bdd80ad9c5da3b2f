import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import type { ParameterForm } from './query.ts'

/**
 * The OpenAPI description of one endpoint. It is defined beside the schemas that check the endpoint's requests and
 * built from them, so that the two cannot diverge.
 */
export interface Operation {
  /** One line. */
  readonly summary: string
  /** The group in the description under which the endpoint is listed. */
  readonly tag: string
  readonly query?: Readonly<Record<string, Described<Pick<ParameterForm<unknown>, 'schema'>>>>
  readonly headers?: Readonly<Record<string, Described<{ readonly schema: z.ZodType }>>>
  /** Patterns of the path parameters, by name; parameters that are not listed are plain text. */
  readonly path?: Readonly<Record<string, string>>
  readonly body?: { readonly mediaType: string; readonly content: NamedSchema }
  /** The answer with 200, by media type. */
  readonly answer: Readonly<Record<string, NamedSchema>>
  /** Its headers besides `x-request-id`. */
  readonly answerHeaders?: AnswerHeaders
  /** The scope that an operator's token needs, where the endpoint takes such tokens. */
  readonly scope?: string
  /** Error codes besides those that every endpoint can answer with. */
  readonly errors: readonly ErrorCode[]
}

/** Headers of an answer, with their descriptions. */
export type AnswerHeaders = Readonly<Record<string, string>>

/** A schema with a name for generated clients. */
export interface NamedSchema {
  readonly name: string
  readonly schema: z.ZodType
}

export type Described<T> = T & { readonly description: string }
