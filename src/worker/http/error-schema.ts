import { z } from 'zod'

/** An error in the OpenAI format, for the interface description; sent as an answer or as the last event of a stream. */
export const errorSchema = z.looseObject({
  error: z.looseObject({
    message: z.string(),
    type: z.string(),
    code: z.string(),
    param: z.string().nullable(),
  }),
})
