import { setTimeout as delay } from 'node:timers/promises'
import type { Dice } from './dice.ts'

/** A router whose parts can be killed. */
export interface Mortal<Part extends string> {
  readonly parts: readonly Part[]
  /** How many deaths of one part within a minute its supervisor tolerates. */
  readonly mostDeathsAMinute: number
  /** SIGKILL; the supervisor, or `untilUp`, restarts the part. */
  kill(part: Part): void
  /** Resolves when every part answers again. */
  untilUp(): Promise<void>
}

const SHORTEST_LIFE_MS = 100
const MAX_LIFE_MS = 2_000
const MINUTE_MS = 61_000

/**
 * Kills parts at random moments, so many in all, each part as often as the others: half of the time while everything
 * is up, else while another part may still be away.
 * @returns the parts that died, in order
 */
export async function killAtRandom<Part extends string>(
  router: Mortal<Part>,
  kills: number,
  dice: Dice,
): Promise<readonly Part[]> {
  const deaths: { readonly part: Part; readonly at: number }[] = []
  const away = new Set<Part>()
  let waiting: Part[] = []
  while (deaths.length < kills) {
    if (waiting.length === 0) waiting = [...router.parts]
    const part = dice.pick(waiting)
    if (away.has(part) || (away.size > 0 && dice.oneIn(2))) {
      await router.untilUp()
      away.clear()
    }
    const own = deaths.filter((death) => death.part === part)
    const grace = (own.at(-router.mostDeathsAMinute)?.at ?? -MINUTE_MS) + MINUTE_MS
    await delay(Math.max(0, grace - performance.now()))
    await delay(dice.between(SHORTEST_LIFE_MS, MAX_LIFE_MS))
    router.kill(part)
    waiting = waiting.filter((other) => other !== part)
    away.add(part)
    deaths.push({ part, at: performance.now() })
  }
  await router.untilUp()
  return deaths.map(({ part }) => part)
}
