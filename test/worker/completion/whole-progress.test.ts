import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { WholeProgress } from '../../../src/worker/completion/whole-progress.ts'
import { AnswerRoom } from '../../../src/worker/provider/answer-room.ts'
import { AttemptFailure } from '../../../src/worker/provider/failure.ts'
import { Budget } from '../../../src/worker/routing/budget.ts'
import { chatRoute } from '../../support/chat-fixtures.ts'

const ATTEMPT = { route: chatRoute(), entry: 0, failover: false, effort: undefined }
const LIMIT = new ApiError('answer_too_long', 'too long')
const OUT_OF_TIME = new ApiError('upstream_timeout', 'out of time')

interface Ending {
  readonly error: Error
  /** Bytes that have come of the answer. */
  readonly come?: number
  readonly isOutOfTime?: boolean
  /** Whether the router is stopped meanwhile. */
  readonly isStopped?: boolean
  readonly hurried?: boolean
  readonly isAnswered?: boolean
}

/** What is to be paid of a request whose only attempt ended so. */
async function paidOf({ error, come, hurried = false, ...ending }: Ending) {
  const { isOutOfTime = false, isStopped = false, isAnswered } = ending
  let clock = 0
  let passed: () => void = () => {}
  const after = (_ms: number, call: () => void) => {
    passed = call
    return { stop: () => {} }
  }
  const budget = new Budget(() => clock, after)
  budget.limit(1_000, () => OUT_OF_TIME)
  const progress = new WholeProgress(budget, new AnswerRoom(() => {}))
  const ask = async () => {
    if (come !== undefined) progress.room.hold(come, true)
    if (isOutOfTime) {
      clock = 1_000
      passed()
    }
    if (isStopped) budget.abort(error)
    if (isAnswered !== true) throw error
  }
  await progress.during(ATTEMPT, ask).catch(() => {})
  if (isAnswered === true) progress.answered()
  return progress.lostWork(error, hurried)
}

const STOPPED = { error: new ApiError('service_unavailable', 'stopped'), isStopped: true }
const late = { error: OUT_OF_TIME, isOutOfTime: true }

describe('a request that ends without an answer pays for', () => {
  it.each([
    ['an answer that the router does not take', { error: LIMIT, come: 5 }, 5],
    ['such an answer also once the time is over', { error: LIMIT, come: 5, isOutOfTime: true }, 5],
    ['the prompt of what was under way when its own time was over', { ...late, hurried: true }, 0],
    ['no more than that where some of it had come', { ...late, hurried: true, come: 7 }, 0],
  ] as const)('%s', async (_, ending, bytes) => {
    expect(await paidOf(ending)).toEqual({ attempt: ATTEMPT, bytes })
  })

  it.each([
    [
      'that its provider failed',
      { error: new AttemptFailure({ kind: 'unavailable' }), come: 5, hurried: true },
    ],
    ['that the daemon was lost', { error: new LinkUnavailable('lost'), come: 5 }],
    ['that was refused before a provider was asked', { error: LIMIT, hurried: true }],
    ['when the time of the service was over', late],
    ['when the router was stopped within its own time', { ...STOPPED, hurried: true }],
    ['that is withheld once it was ready', { error: LIMIT, come: 5, isAnswered: true }],
  ] as const)('nothing %s', async (_, ending) => {
    expect(await paidOf(ending)).toBeUndefined()
  })
})
