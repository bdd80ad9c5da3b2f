import * as z from 'zod'

/**
 * The last event of `/v1/chat/completions` and `/v1/messages`. It says nothing of the answer except how it ended. Other
 * members are refused: some reader could take one for text, as a case-insensitive reader would take `Choices`.
 */
const endSchema = z.union([
  z.strictObject({ type: z.literal('message_stop'), service: z.unknown() }),
  z.strictObject({
    id: z.string().optional(),
    object: z.literal('chat.completion.chunk').optional(),
    created: z.int().optional(),
    model: z.string().optional(),
    choices: z
      .array(
        z.strictObject({
          index: z.int().optional(),
          delta: z.strictObject({}),
          finish_reason: z.string().nullish(),
          logprobs: z.null().optional(),
        }),
      )
      .optional(),
    usage: z.unknown().optional(),
    service: z.unknown(),
  }),
])

/**
 * The last event of `/v1/responses`, which repeats the complete answer. Other members are refused, because readers of
 * other endpoints would look for text there; so is `output_text`, which the router never writes, but which some client
 * libraries show instead of the output.
 */
const repeatSchema = z.strictObject({
  type: z.enum(['response.completed', 'response.incomplete']),
  sequence_number: z.int().optional(),
  response: z
    .looseObject({
      output: z.array(z.unknown()),
      output_text: z.undefined().optional(),
    })
    .refine((response) => !Object.keys(response).some(passesForOutput)),
  service: z.unknown(),
})

/** Whether readers that ignore case, or the form of a letter, would take a member for the output. */
function passesForOutput(name: string): boolean {
  const plain = name.normalize('NFKC').toLowerCase()
  return name !== plain && (plain === 'output' || plain === 'output_text')
}

/**
 * Whether the last event of a stream, which no receipt signs, says something of the answer that the earlier events do
 * not: text, a tool call, or an output that differs from the finished items.
 * @param event its name, if it has one, and its data
 * @param items what `finishedItem` found in the earlier events
 */
export function tellsMore({ name, data }: NamedEvent, items: readonly unknown[]): boolean {
  const repeat = repeatSchema.safeParse(data).data
  if (repeat === undefined && !endSchema.safeParse(data).success) return true
  // Some readers use the event's name as the type where the data has none.
  if (name !== undefined && name !== typeSchema.safeParse(data).data?.type) return true
  return repeat !== undefined && JSON.stringify(repeat.response.output) !== JSON.stringify(items)
}

export interface NamedEvent {
  readonly name: string | undefined
  readonly data: unknown
}

const typeSchema = z.looseObject({ type: z.string() })

const doneSchema = z.looseObject({
  type: z.literal('response.output_item.done'),
  item: z.unknown(),
})

/** The item that an event of `/v1/responses` reports as finished, if it is such an event. */
export function finishedItem(data: unknown): readonly unknown[] {
  const done = doneSchema.safeParse(data).data
  return done === undefined ? [] : [done.item]
}
