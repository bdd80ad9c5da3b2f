import { startDeadline } from '../batching/deadline-timer.ts'
import { StorageUnavailable } from './database.ts'

/** The time of an operation was up before the database had answered. What it sent may be carried out all the same. */
export class DeadlinePassed extends StorageUnavailable {
  constructor(ms: number) {
    super(`the database did not answer within ${ms} ms`)
  }
}

/** The time that one operation may take, whatever it waits for and however often it is tried. */
export interface OperationDeadline {
  /** Rejects with `DeadlinePassed` once the time is up. */
  readonly passed: Promise<never>
  /** What is left of the time, ms; as `passed`, with the grace after a time in which the program did not run. */
  leftMs(): number
}

/** The database gives up waiting for a lock this long before we do, so that its answer comes in time, ms. */
const ANSWER_MS = 250

/** How long the database may wait for one lock, ms. */
export function lockMsOf(deadline: OperationDeadline): number {
  return Math.max(1, Math.floor(deadline.leftMs() - ANSWER_MS))
}

/** How long the database may take for one statement, ms. */
export function readMsOf(deadline: OperationDeadline): number {
  return Math.max(1, Math.floor(deadline.leftMs()))
}

/** What deadlines of operations are made of. */
export interface DeadlineRules {
  /** How long an operation may take, ms. */
  readonly deadlineMs: number
  /** Ms. */
  readonly now: () => number
}

/** Carries out an operation with a deadline that begins now. */
export async function withDeadline<Result>(
  { deadlineMs, now }: DeadlineRules,
  operation: (deadline: OperationDeadline) => Promise<Result>,
): Promise<Result> {
  const { promise: passed, reject } = Promise.withResolvers<never>()
  // It may pass while the operation waits for something else.
  passed.catch(() => {})
  const timer = startDeadline(deadlineMs, now, () => reject(new DeadlinePassed(deadlineMs)))
  try {
    return await operation({ passed, leftMs: () => timer.leftMs() })
  } finally {
    timer.stop()
  }
}
