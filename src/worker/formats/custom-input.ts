import * as z from 'zod'

const inputSchema = z.object({ input: z.string() })

/** A call without arguments, as it is passed on. */
const nothingSchema = z.strictObject({})

/**
 * The input of a custom tool from a function's arguments, empty where there are none; other arguments than that object are
 * taken as the input.
 */
export function customInput(args: string): string {
  try {
    const value: unknown = JSON.parse(args)
    const parsed = inputSchema.safeParse(value)
    if (parsed.success) return parsed.data.input
    return nothingSchema.safeParse(value).success ? '' : args
  } catch {
    return args
  }
}
