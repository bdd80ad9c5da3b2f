import type { ApiError } from '../http/errors.ts'
import type { WaitDeps } from './fair-limiter.ts'

export interface TurnLimits {
  /** How many requests may be at work while several owners are active; half as many as there are owners, if that is more. */
  readonly capacity: number
  /** How long after its last request an owner counts as active, ms. */
  readonly activeMs: number
  /** How many requests of one owner may wait, and for how long. */
  readonly maxWaiting: number
  readonly maxWaitMs: number
  /** Makes the error of a request that waited too long, or that found too many requests of its owner waiting. */
  readonly refusal: () => ApiError
}

/** Whose request it is, and how much of the thread it takes: 1 is a small request. */
export interface Turn {
  readonly owner: string
  readonly cost: number
}

/** What is read and digested in the time that a small request takes, bytes. */
const BYTES_PER_COST = 64 * 1024

/** The cost of a request with a body of so many bytes. */
export function costOfBytes(bytes: number): number {
  return 1 + bytes / BYTES_PER_COST
}

/** A request that waits; it may have been woken already. */
interface Ticket {
  readonly cost: number
  wake: () => void
}

interface Owner {
  atWork: number
  seenAt: number
  /** Virtual time: the cost of all that it was given, from where the others stood when it came. */
  served: number
  /** In the order in which they go on. */
  readonly waiting: Ticket[]
}

/** When the first of an owner's waiting requests looks for itself, in case that nobody has woken it, ms. */
const FALLBACK_MS = 100
const LONGEST_FALLBACK_MS = 5_000

/** Requests farther back look more rarely: the timers of hundreds that wait would take the thread themselves. */
function fallbackMs(place: number): number {
  return Math.min(FALLBACK_MS * (place + 1), LONGEST_FALLBACK_MS)
}

/**
 * Divides the one thread among owners. While one owner alone is active, it may have as many requests at work as it
 * sends. While several are, only a few requests are at work at a time, and of those that wait one of the owner that has
 * been given least goes on next (start-time fair queueing: Goyal, Vin and Cheng, SIGCOMM 1996). A request at work delays
 * everybody's, a waiting one delays nobody: an owner that asks for less than an equal part hardly waits at all.
 */
export class FairTurns {
  readonly #limits: TurnLimits
  /** Those that are active, in the order in which they were last seen. */
  readonly #owners = new Map<string, Owner>()
  readonly #waiting = new Set<Owner>()
  #atWork = 0
  /** The virtual time at which the latest request began. */
  #time = 0

  constructor(limits: TurnLimits) {
    this.#limits = limits
  }

  /**
   * Runs the work that begins a request.
   * @throws ApiError made by `refusal` when it waited too long or too many are waiting
   */
  async begin<Result>(turn: Turn, deps: WaitDeps, work: () => Promise<Result>): Promise<Result> {
    const { maxWaiting, maxWaitMs, refusal } = this.#limits
    const owner = this.#seen(turn.owner, deps.now())
    const place = owner.waiting.length
    const giveUpAt = deps.now() + maxWaitMs
    const entered =
      place < maxWaiting && (await this.#enter(owner, place, turn.cost, deps, giveUpAt))
    if (!entered) throw refusal()
    return this.#run(owner, deps, work)
  }

  /** Runs the work that ends a request: before what its owner only begins, and never refused. */
  async finish<Result>(turn: Turn, deps: WaitDeps, work: () => Promise<Result>): Promise<Result> {
    const owner = this.#seen(turn.owner, deps.now())
    await this.#enter(owner, 0, turn.cost, deps, Number.POSITIVE_INFINITY)
    return this.#run(owner, deps, work)
  }

  /** Waits at a place in the owner's queue. False: `giveUpAt` is over. */
  async #enter(
    owner: Owner,
    place: number,
    cost: number,
    deps: WaitDeps,
    giveUpAt: number,
  ): Promise<boolean> {
    if (this.#waiting.size === 0 && this.#hasRoom(deps.now())) return this.#take(owner, cost)
    const ticket: Ticket = { cost, wake: () => {} }
    owner.waiting.splice(place, 0, ticket)
    this.#waiting.add(owner)
    try {
      for (;;) {
        const now = deps.now()
        if (this.#hasRoom(now) && this.#next() === ticket) return this.#take(owner, cost)
        if (now >= giveUpAt) return false
        // oxlint-disable-next-line no-await-in-loop -- it looks again after each wait
        await Promise.race([wakeUp(ticket), deps.pause(fallbackMs(owner.waiting.indexOf(ticket)))])
      }
    } finally {
      owner.waiting.splice(owner.waiting.indexOf(ticket), 1)
      if (owner.waiting.length === 0) this.#waiting.delete(owner)
      this.#wakeNext(deps.now())
    }
  }

  async #run<Result>(owner: Owner, deps: WaitDeps, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } finally {
      owner.atWork -= 1
      this.#atWork -= 1
      this.#wakeNext(deps.now())
    }
  }

  #take(owner: Owner, cost: number): true {
    owner.atWork += 1
    this.#atWork += 1
    this.#time = Math.max(this.#time, owner.served)
    owner.served += cost
    return true
  }

  #wakeNext(now: number): void {
    if (this.#waiting.size > 0 && this.#hasRoom(now)) this.#next()?.wake()
  }

  /** The waiting request that goes on next. */
  #next(): Ticket | undefined {
    let next: Owner | undefined
    for (const owner of this.#waiting) {
      if (next === undefined || owner.served < next.served) next = owner
    }
    return next?.waiting[0]
  }

  #hasRoom(now: number): boolean {
    const active = this.#countActive(now)
    return active <= 1 || this.#atWork < Math.max(this.#limits.capacity, active / 2)
  }

  #countActive(now: number): number {
    for (const [name, { atWork, seenAt, waiting }] of this.#owners) {
      const isActive = Math.abs(now - seenAt) < this.#limits.activeMs
      if (isActive || atWork > 0 || waiting.length > 0) break
      this.#owners.delete(name)
    }
    return this.#owners.size
  }

  #seen(name: string, now: number): Owner {
    const owner = this.#owners.get(name) ?? { atWork: 0, seenAt: now, served: 0, waiting: [] }
    owner.seenAt = now
    // Who asks for nothing saves nothing up.
    owner.served = Math.max(owner.served, this.#time)
    this.#owners.delete(name)
    this.#owners.set(name, owner)
    return owner
  }
}

function wakeUp(ticket: Ticket): Promise<void> {
  return new Promise((resolve) => {
    ticket.wake = resolve
  })
}
