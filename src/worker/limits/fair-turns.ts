import type { ApiError } from '../http/errors.ts'
import { ActiveOwners, type Owner, type Ticket } from './active-owners.ts'
import type { WaitDeps } from './fair-limiter.ts'
import { HeldTurn, type CountTurn, type TakenTurn } from './held-turn.ts'

export interface TurnLimits {
  /**
   * How many requests may run at a time while several owners are active and have at least as many requests as there are
   * owners; half the number of active owners, if that is more.
   */
  readonly capacity: number
  /**
   * More requests may run as long as the total cost of all is below this: small requests share their calls to the storage
   * and the daemon, and delay others little.
   */
  readonly capacityOfCost: number
  /** How long after its last request an owner counts as active, ms. */
  readonly activeMs: number
  /** How many requests of one owner may wait, and for how long. */
  readonly maxWaiting: number
  readonly maxWaitMs: number
  /** Makes the error of a request that waited too long, or that found too many requests of its owner waiting. */
  readonly refusal: () => ApiError
  /** Makes the error of a request whose client disconnected before its turn; nobody receives it. */
  readonly disconnected: () => ApiError
}

/** The owner of a request, and its cost in CPU time: 1 is a small request. */
export interface Turn {
  readonly owner: string
  readonly cost: number
}

type Work<Result> = (turn: HeldTurn) => Promise<Result>

/**
 * Bytes whose reading and hashing takes the CPU time of a small request. A power of two, so that sums of costs are exact.
 */
const BYTES_PER_COST = 64 * 1024

/** The cost of a request with a body of this many bytes. */
export function costOfBytes(bytes: number): number {
  return 1 + bytes / BYTES_PER_COST
}

/** How long a request waits. */
interface WaitLimits {
  /** Ms. */
  readonly giveUpAt: number
  /** Aborts when the request's client disconnects. */
  readonly client?: AbortSignal
}

const UNLIMITED: WaitLimits = { giveUpAt: Number.POSITIVE_INFINITY }

/**
 * How often an owner's first waiting request polls, in case it is not woken, ms; below, the limit for requests farther back.
 */
const FALLBACK_MS = 100
const MAX_FALLBACK_MS = 5_000

/**
 * Requests farther back in the queue poll less often: the timers of hundreds of waiting requests would cost CPU time
 * themselves.
 */
function fallbackMs(place: number): number {
  return Math.min(FALLBACK_MS * (place + 1), MAX_FALLBACK_MS)
}

/**
 * Divides the one thread fairly among owners. A single active owner may run as many requests as it sends. While several are
 * active, only a few requests run at a time, and the next one belongs to the owner that was given the least so far
 * (start-time fair queueing: Goyal, Vin and Cheng, SIGCOMM 1996). A running request delays all others, a waiting one delays
 * none, so an owner that uses less than an equal share hardly waits at all.
 */
export class FairTurns {
  readonly #limits: TurnLimits
  readonly #owners: ActiveOwners
  readonly #waiting = new Set<Owner>()
  #waitingRequests = 0
  /** Requests whose turn was granted but that have not started yet, in the order of the grants. */
  readonly #called = new Set<Ticket>()
  #atWork = 0
  #costAtWork = 0
  /** The virtual time at which the latest request started. */
  #time = 0

  constructor(limits: TurnLimits) {
    this.#limits = limits
    this.#owners = new ActiveOwners(limits.activeMs)
  }

  /**
   * Runs the first part of a request's work when its turn comes, unless its client disconnects first.
   * @throws ApiError made by `refusal` when it waited too long or too many are waiting, or by `disconnected`
   */
  begin<Result>(
    turn: Turn & { readonly client: AbortSignal },
    deps: WaitDeps,
    work: Work<Result>,
  ): Promise<Result> {
    const { maxWaiting, maxWaitMs, refusal, disconnected } = this.#limits
    const { cost, client } = turn
    if (client.aborted) return Promise.reject(disconnected())
    const owner = this.#owners.seen(turn.owner, deps.now(), this.#time)
    const run = () => this.#run({ owner, cost }, deps, work)
    if (this.#entersAtOnce(owner, cost, deps.now())) return run()
    const refused = () => Promise.reject(client.aborted ? disconnected() : refusal())
    const place = owner.waiting.length
    if (place >= maxWaiting) return refused()
    const until = { giveUpAt: deps.now() + maxWaitMs, client }
    const entering = this.#wait(owner, place, cost, deps, until)
    return entering.then((entered) => (entered ? run() : refused()))
  }

  /** Runs the last part of a request's work: ahead of its owner's new requests, and never refused. */
  finish<Result>({ owner: name, cost }: Turn, deps: WaitDeps, work: Work<Result>): Promise<Result> {
    const owner = this.#owners.seen(name, deps.now(), this.#time)
    const run = () => this.#run({ owner, cost }, deps, work)
    if (this.#entersAtOnce(owner, cost, deps.now())) return run()
    return this.#wait(owner, 0, cost, deps, UNLIMITED).then(run)
  }

  /** Takes a turn at once if no other request waits and there is room. */
  #entersAtOnce(owner: Owner, cost: number, now: number): boolean {
    if (this.#waiting.size > 0) return false
    this.#waitingRequests += 1
    const hasRoom = this.#hasRoom(cost, now)
    this.#waitingRequests -= 1
    return hasRoom && this.#take(owner, cost)
  }

  /**
   * Waits at this place in the owner's queue, and takes a turn.
   * @returns false where `giveUpAt` has passed or the client has disconnected
   */
  async #wait(
    owner: Owner,
    place: number,
    cost: number,
    deps: WaitDeps,
    { giveUpAt, client }: WaitLimits,
  ): Promise<boolean> {
    this.#waitingRequests += 1
    const ticket: Ticket = { cost, calledAt: undefined, wake: () => {} }
    owner.waiting.splice(place, 0, ticket)
    this.#waiting.add(owner)
    const leave = () => ticket.wake()
    client?.addEventListener('abort', leave)
    try {
      for (;;) {
        const now = deps.now()
        if (client?.aborted === true) return false
        if (this.#mayRun(ticket, now)) return this.#take(owner, cost)
        if (now >= giveUpAt) return false
        this.#called.delete(ticket)
        ticket.calledAt = undefined
        // The queue is checked after each wait.
        await Promise.race([wakeUp(ticket), deps.pause(fallbackMs(owner.waiting.indexOf(ticket)))])
      }
    } finally {
      client?.removeEventListener('abort', leave)
      owner.waiting.splice(owner.waiting.indexOf(ticket), 1)
      this.#called.delete(ticket)
      this.#waitingRequests -= 1
      if (owner.waiting.length === 0) this.#waiting.delete(owner)
      this.#callNext(deps.now())
    }
  }

  async #run<Result>(taken: TakenTurn, deps: WaitDeps, work: Work<Result>): Promise<Result> {
    const turn = new HeldTurn(taken, deps, this.#count)
    try {
      return await work(turn)
    } finally {
      turn.end()
    }
  }

  readonly #count: CountTurn = ({ owner, turns, cost }, { now }) => {
    owner.atWork += turns
    this.#atWork += turns
    this.#costAtWork += cost
    if (turns < 0) this.#callNext(now())
  }

  #take(owner: Owner, cost: number): true {
    owner.atWork += 1
    this.#atWork += 1
    this.#costAtWork += cost
    this.#time = Math.max(this.#time, owner.served)
    owner.served += cost
    return true
  }

  #mayRun(ticket: Ticket, now: number): boolean {
    const { cost, calledAt } = ticket
    if (calledAt !== undefined) return this.#fits(cost, this.#atWork, this.#costAtWork, now)
    return this.#next() === ticket && this.#hasRoom(cost, now)
  }

  /**
   * Grants turns to as many waiting requests as may run, all at the same time: requests that run concurrently share their
   * calls to the storage and the daemon (src/worker/batching), while a request that another one woke would come too late for
   * them.
   */
  #callNext(now: number): void {
    if (this.#waiting.size === 0) return
    for (;;) {
      const next = this.#next()
      if (next === undefined || !this.#hasRoom(next.cost, now)) return
      next.calledAt = now
      this.#called.add(next)
      next.wake()
    }
  }

  /** The request that runs next, among those whose turn was not granted yet. */
  #next(): Ticket | undefined {
    let next: Ticket | undefined
    let least = Number.POSITIVE_INFINITY
    for (const { served, waiting } of this.#waiting) {
      let given = served
      for (const ticket of waiting) {
        if (given >= least) break
        if (ticket.calledAt === undefined) {
          next = ticket
          least = given
          break
        }
        given += ticket.cost
      }
    }
    return next
  }

  /** Whether a request may run beside those that run and those whose turn was granted. */
  #hasRoom(cost: number, now: number): boolean {
    let costCalled = 0
    for (const ticket of this.#called) {
      // The runtime may have ended the request before it could start.
      if (now - (ticket.calledAt ?? now) >= FALLBACK_MS) this.#called.delete(ticket)
      else costCalled += ticket.cost
    }
    const beside = this.#atWork + this.#called.size
    return this.#fits(cost, beside, this.#costAtWork + costCalled, now)
  }

  /** Whether a request may run beside this many others with this total cost. */
  #fits(cost: number, others: number, costOfOthers: number, now: number): boolean {
    return costOfOthers + cost <= this.#limits.capacityOfCost || others < this.#maxAtWork(now)
  }

  /**
   * The maximum number of running requests. No limit while there are fewer requests than active owners: no owner can then
   * crowd out the others.
   */
  #maxAtWork(now: number): number {
    const active = this.#owners.count(now)
    if (active <= 1 || this.#atWork + this.#waitingRequests < active)
      return Number.POSITIVE_INFINITY
    return Math.max(this.#limits.capacity, active / 2)
  }
}

function wakeUp(ticket: Ticket): Promise<void> {
  return new Promise((resolve) => {
    ticket.wake = resolve
  })
}
