import { z } from 'zod'

/** The router's answers as far as whole-app tests look into them. */

const completionSchema = z.looseObject({
  model: z.string().optional(),
  service: z.looseObject({ receipt_id: z.string().optional() }),
  usage: z.object({ prompt_tokens: z.int(), completion_tokens: z.int() }).optional(),
})

const usageListSchema = z.object({
  data: z.array(
    z.looseObject({
      id: z.string(),
      receipt_id: z.string().nullable(),
      cost_eur: z.number(),
    }),
  ),
  total_count: z.int(),
})

export const errorSchema = z.object({
  error: z.looseObject({
    message: z.string().min(1),
    type: z.string(),
    code: z.string(),
    param: z.string().nullable(),
  }),
})

export type Completion = z.output<typeof completionSchema>

/** A completion, whole or the last chunk of a stream. */
export function completionIn(text: string): Completion {
  return completionSchema.parse(JSON.parse(text))
}

export async function completionOf(answer: Response): Promise<Completion> {
  return completionIn(await answer.text())
}

export async function usageOf(answer: Response): Promise<z.output<typeof usageListSchema>> {
  return usageListSchema.parse(await answer.json())
}

export async function errorOf(answer: Response): Promise<z.output<typeof errorSchema>['error']> {
  return errorSchema.parse(await answer.json()).error
}
