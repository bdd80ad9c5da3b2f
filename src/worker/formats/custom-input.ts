import * as z from 'zod'

const inputSchema = z.object({ input: z.string() })

/**
 * The input of a custom tool from a function's arguments; arguments that are not that object are taken as the input.
 */
export function customInput(args: string): string {
  try {
    const value: unknown = JSON.parse(args)
    const parsed = inputSchema.safeParse(value)
    return parsed.success ? parsed.data.input : args
  } catch {
    return args
  }
}
