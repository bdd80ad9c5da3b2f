import * as z from 'zod'

/**
 * The last event as `/v1/chat/completions` and `/v1/messages` write it: it tells nothing of the answer but how it ended. It has no
 * other member: to some reader that could be text, as `Choices` is to one without regard to capital letters.
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
 * The last event of `/v1/responses`, which repeats the whole answer. Readers of another endpoint would find their text in other
 * members of it, and some client libraries show `output_text`, which the router never writes, in place of the output.
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

/** Whether readers without regard to capital letters, or to the kind of a letter, take a member for the output. */
function passesForOutput(name: string): boolean {
  const plain = name.normalize('NFKC').toLowerCase()
  return name !== plain && (plain === 'output' || plain === 'output_text')
}

/**
 * Whether the last event of a stream, which no receipt signs, tells something of the answer that the events before it do
 * not: text, a call of a tool, or another output than the finished items.
 * @param event its name, where it has one, and its data
 * @param items what `finishedItem` finds in the events before it
 */
export function tellsMore({ name, data }: NamedEvent, items: readonly unknown[]): boolean {
  const repeat = repeatSchema.safeParse(data).data
  if (repeat === undefined && !endSchema.safeParse(data).success) return true
  // Some readers take the name for the type where the data has none.
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

/** The item that an event of `/v1/responses` says to be finished, if it is such an event. */
export function finishedItem(data: unknown): readonly unknown[] {
  const done = doneSchema.safeParse(data).data
  return done === undefined ? [] : [done.item]
}
