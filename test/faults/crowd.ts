import { setTimeout as delay } from 'node:timers/promises'
import type { Script } from '../support/fault-provider.ts'
import { content, DONE, EVENT_STREAM, ROLE, STOP, usageFrame } from './answers.ts'
import { PROMPT } from './ask.ts'
import { openWorld, type World, type WorldOptions, type WorldRoute } from './world.ts'

/** Sound streams beside the trials, so many that the router joins the chunks of all. */

const MODEL = 'crowd'

export const STREAMS = 96

/** A stream counts as active for a second after a chunk; one ends before any clock of the router does that. */
const FRAMES = 10
export const FRAME_MS = 400

/** Long streams, with few frames. The first ones have different lengths, so that they do not end together. */
const slow: Script = async ({ wire, number }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE)
  const frames = number > STREAMS ? FRAMES : 1 + (number % FRAMES)
  for (let frame = 0; frame < frames && !wire.over; frame += 1) {
    wire.send(content('word '))
    await delay(FRAME_MS)
  }
  wire.send(STOP + usageFrame() + DONE)
  wire.end()
}

const TALKER = 'talker'

const WORDS = 100
const WORD_MS = 3

/** Many small frames, far more often than one stream among so many may send. */
const talking: Script = async ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  wire.send(ROLE)
  for (let word = 0; word < WORDS && !wire.over; word += 1) {
    wire.send(content('word '))
    await delay(WORD_MS)
  }
  wire.send(STOP + usageFrame() + DONE)
  wire.end()
}

/** The routes that the streams take. */
const CROWD_ROUTES: readonly WorldRoute[] = [
  { model: MODEL, at: 'alpha', script: slow },
  { model: TALKER, at: 'alpha', script: talking },
]

/** A stream sends at most once in a window, which for so many streams is twice as long (`crowd.test.ts`); this leaves room for what never waits. */
export const MIN_WINDOW_MS = 12
const AT_ONCE = 8

/** On a busy machine one stream of words may take so long that it says nothing, because all its words may come in pieces of their own. */
const TALKS = 5

/** A world in which they run as long as it is open. */
export async function openCrowdedWorld(
  routes: readonly WorldRoute[],
  options: WorldOptions,
): Promise<World> {
  const world = await openWorld([...routes, ...CROWD_ROUTES], options)
  const crowd = await openCrowd(world).catch(async (error: unknown) => {
    await world.close()
    throw error
  })
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
   * @throws Error when any of them was not served, or they were too few for anything to be joined
   */
  leave(): Promise<void>
}

/** Opens the streams, and each anew when it has ended; resolves when all have begun. */
async function openCrowd(world: World): Promise<Crowd> {
  const { key } = await world.newCustomer()
  const stop = new AbortController()
  const failures = new Set<string>()
  const request = (model: string) => ({
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: PROMPT }] }),
    signal: stop.signal,
  })
  const ask = async (model = MODEL) => {
    const answer = await world.stack.fetch('/v1/chat/completions', request(model))
    if (answer.status !== 200) failures.add(`${answer.status} ${await answer.text()}`)
    return answer
  }
  const follow = async (begun: Response) => {
    for (let answer = begun; !stop.signal.aborted; answer = await ask()) {
      const text = await answer.text()
      if (!text.endsWith('data: [DONE]\n\n')) failures.add(text.slice(-200))
    }
  }
  const begun = await Promise.all(Array.from({ length: STREAMS }, () => ask()))
  const followed = begun.map((answer) =>
    follow(answer).catch((error: unknown) => {
      if (!stop.signal.aborted) failures.add(String(error))
    }),
  )
  const talk = async () => {
    for (let talks = 0; talks < TALKS; talks += 1) {
      const pieces = await readPieces(() => ask(TALKER))
      requireJoined(pieces)
      if (mostJoined(pieces) < WORDS) return
    }
  }
  await talk()
  return {
    leave: async () => {
      await talk().catch((error: unknown) => failures.add(String(error)))
      stop.abort()
      await Promise.all(followed)
      if (failures.size > 0) throw new Error(`beside the trials: ${[...failures].join(', ')}`)
    },
  }
}

/** In how many pieces an answer came, and how long it took from the request on, ms. */
interface Pieces {
  readonly count: number
  readonly ms: number
}

async function readPieces(ask: () => Promise<Response>): Promise<Pieces> {
  const begun = performance.now()
  const { body } = await ask()
  let count = 0
  if (body !== null) for await (const piece of body) count += piece.length > 0 ? 1 : 0
  return { count, ms: performance.now() - begun }
}

function requireJoined(pieces: Pieces): void {
  const { count, ms } = pieces
  if (count <= mostJoined(pieces)) return
  throw new Error(`${count} pieces in ${Math.round(ms)} ms: nothing is joined`)
}

/** However slow the machine is: where each stream may send once in a window, no more pieces come than there were windows. */
function mostJoined({ ms }: Pieces): number {
  return ms / MIN_WINDOW_MS + AT_ONCE
}
