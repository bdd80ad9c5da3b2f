import { startDeadline } from '../batching/deadline-timer.ts'
import { StorageUnavailable } from './database.ts'

/** The deadline of an operation passed before the database answered. What was sent may still be carried out. */
export class DeadlinePassed extends StorageUnavailable {
  constructor(ms: number) {
    super(`the database did not answer within ${ms} ms`)
  }
}

/** The deadline of one operation, including all its waits and retries. */
export interface OperationDeadline {
  /** Rejects with `DeadlinePassed` once the time is up. */
  readonly passed: Promise<never>
  /** The time that is left, ms; extended like `passed` after a time in which the program did not run. */
  leftMs(): number
}

/** How long before our deadline the database stops waiting for a lock, so that its answer arrives in time, ms. */
const ANSWER_MS = 250

/** How long the database may wait for one lock, ms. */
export function lockMsOf(deadline: OperationDeadline): number {
  return Math.max(1, Math.floor(deadline.leftMs() - ANSWER_MS))
}

/** How long the database may take for one read statement, ms. */
export function readMsOf(deadline: OperationDeadline): number {
  return Math.max(1, Math.floor(deadline.leftMs()))
}

/** The rules from which deadlines of operations are made. */
export interface DeadlineRules {
  /** How long an operation may take, ms. */
  readonly deadlineMs: number
  /** Ms. */
  readonly now: () => number
}

/** Carries out an operation with a deadline that starts now. */
export async function withDeadline<Result>(
  { deadlineMs, now }: DeadlineRules,
  operation: (deadline: OperationDeadline) => Promise<Result>,
): Promise<Result> {
  const { promise: passed, reject } = Promise.withResolvers<never>()
  // The deadline may pass while the operation awaits something else.
  passed.catch(() => {})
  const timer = startDeadline(deadlineMs, now, () => reject(new DeadlinePassed(deadlineMs)))
  try {
    return await operation({ passed, leftMs: () => timer.leftMs() })
  } finally {
    timer.stop()
  }
}
