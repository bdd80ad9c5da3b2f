import * as z from 'zod'

/** The last event as `/v1/chat/completions` and `/v1/messages` write it: it tells nothing of the answer but how it ended. */
const endSchema = z.union([
  z.strictObject({ type: z.literal('message_stop'), service: z.unknown() }),
  z.looseObject({
    type: z.undefined().optional(),
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
  }),
])

/** The last event of `/v1/responses`, which repeats the whole answer. */
const repeatSchema = z.looseObject({
  type: z.enum(['response.completed', 'response.incomplete']),
  response: z.looseObject({ output: z.array(z.unknown()) }),
})

/**
 * Whether the last event of a stream, which no receipt signs, tells something of the answer that the events before it do
 * not: text, a call of a tool, or another output than the finished items.
 * @param last the last event's data
 * @param before the data of the events before it
 */
export function tellsMore(last: unknown, before: Iterable<unknown>): boolean {
  const repeat = repeatSchema.safeParse(last).data
  if (repeat === undefined) return !endSchema.safeParse(last).success
  return JSON.stringify(repeat.response.output) !== JSON.stringify(finishedItems(before))
}

const doneSchema = z.looseObject({
  type: z.literal('response.output_item.done'),
  item: z.unknown(),
})

function finishedItems(events: Iterable<unknown>): unknown[] {
  return [...events].flatMap((event) => {
    const done = doneSchema.safeParse(event).data
    return done === undefined ? [] : [done.item]
  })
}
