import * as z from 'zod'

const inputSchema = z.object({ input: z.string() })

/** The arguments of a call without input: `{}`. */
const nothingSchema = z.strictObject({})

/**
 * Reads the input of a custom tool from the arguments of its function (`{"input": …}`). It is empty for `{}`; any other
 * arguments are themselves taken as the input.
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
