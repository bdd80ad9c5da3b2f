import { setTimeout as delay } from 'node:timers/promises'
import type { Script } from '../support/fault-provider.ts'
import { content, DONE, EVENT_STREAM, ROLE, STOP, usageFrame } from './answers.ts'
import { PROMPT } from './ask.ts'
import { openWorld, type World, type WorldOptions, type WorldRoute } from './world.ts'

/** Sound streams beside the trials, so many that the router joins the chunks of all. */

const MODEL = 'crowd'

const STREAMS = 96

/** A stream counts as active for a second after a chunk; one ends before any clock of the router does that. */
const FRAMES = 10
const FRAME_MS = 400

/** Long streams, with few frames. */
const slow: Script = async ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE)
  for (let frame = 0; frame < FRAMES && !wire.over; frame += 1) {
    wire.send(content('word '))
    await delay(FRAME_MS)
  }
  wire.send(STOP + usageFrame() + DONE)
  wire.end()
}

/** The route that the streams take. */
const CROWD_ROUTE: WorldRoute = { model: MODEL, at: 'alpha', script: slow }

/** A world in which they run as long as it is open. */
export async function openCrowdedWorld(
  routes: readonly WorldRoute[],
  options: WorldOptions,
): Promise<World> {
  const world = await openWorld([...routes, CROWD_ROUTE], options)
  const crowd = await openCrowd(world)
  const close = async () => {
    try {
      await crowd.leave()
    } finally {
      await world.close()
    }
  }
  return { ...world, close }
}

interface Crowd {
  /**
   * Ends the streams.
   * @throws Error when any of them was not served
   */
  leave(): Promise<void>
}

/** Opens the streams, and each anew when it has ended; resolves when all have begun. */
async function openCrowd(world: World): Promise<Crowd> {
  const { key } = await world.newCustomer()
  const stop = new AbortController()
  const failures = new Set<string>()
  const request = {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: MODEL,
      stream: true,
      messages: [{ role: 'user', content: PROMPT }],
    }),
    signal: stop.signal,
  }
  const ask = async () => {
    const answer = await world.stack.fetch('/v1/chat/completions', request)
    if (answer.status !== 200) failures.add(`${answer.status} ${await answer.text()}`)
    return answer
  }
  const follow = async (begun: Response) => {
    for (let answer = begun; !stop.signal.aborted; answer = await ask()) {
      const text = await answer.text()
      if (!text.endsWith('data: [DONE]\n\n')) failures.add(text.slice(-200))
    }
  }
  const begun = await Promise.all(Array.from({ length: STREAMS }, ask))
  const followed = begun.map((answer) =>
    follow(answer).catch((error: unknown) => {
      if (!stop.signal.aborted) failures.add(String(error))
    }),
  )
  return {
    leave: async () => {
      stop.abort()
      await Promise.all(followed)
      if (failures.size > 0) throw new Error(`beside the trials: ${[...failures].join(', ')}`)
    },
  }
}
