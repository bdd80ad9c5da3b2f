import { z } from 'zod'

/** An error in the form of the OpenAI format, as an answer or as the last event of a stream, for the interface description. */
export const errorSchema = z.looseObject({
  error: z.looseObject({
    message: z.string(),
    type: z.string(),
    code: z.string(),
    param: z.string().nullable(),
  }),
})
