import type { Script } from '../../support/fault-provider.ts'
import { FIRST, FIRST_TOKENS, OTHER, OTHER_TOKENS } from '../answers.ts'
import { inQuotes, PROMPT_ESTIMATE } from '../ask.ts'

/** One misconduct of a provider, with what must come of it in both ways of asking. */
export interface ProviderCase {
  readonly name: string
  /** Numbers of the gateway failures (docs/faults.md) that it stands for. */
  readonly failures?: readonly number[]
  /** Absent: nothing listens there. */
  readonly script?: Script
  /** Absent: the fault has no such form. */
  readonly stream?: Expectation
  readonly whole?: Expectation
  /** In both ways of asking where the daemon calls, if it can tell more than the worker's platform. */
  readonly overDaemon?: Expectation
  /** Further members of the request's body. */
  readonly more?: object
  /** Whether one of the router's clocks ends it, so that it needs short ones. */
  readonly timed?: boolean
  readonly long?: boolean
  /** Whether its whole answer never declares a length, or is encoded. */
  readonly undeclared?: boolean
}

/** What must be seen where the route is the only one, and where a healthy one of the same model stands behind it. */
export interface Expectation {
  readonly alone: Outcome
  readonly paired: Outcome
}

export interface Outcome {
  readonly client: string
  /** The ledger, with money and receipt. */
  readonly ledger: string
  /** Of the route under test, in `GET /admin/routes`. */
  readonly health: string
  /** How often its provider was called. */
  readonly calls: number
}

export function outcomeWords({ client, ledger, health, calls }: Outcome): string {
  return `${client} | ${ledger} | ${health} | ${calls} ${calls === 1 ? 'call' : 'calls'}`
}

const tokens = (counted = FIRST_TOKENS) => `${counted.prompt}+${counted.completion}`

/** Served by the other route, as if nothing had happened. */
const RESCUED = {
  client: `200 stop ${inQuotes(OTHER)}`,
  ledger: `beta ${tokens(OTHER_TOKENS)}, receipt`,
}

/** The fault is none: the answer is complete. */
export function served(
  options: { text?: string; counted?: string; finish?: string } = {},
): Expectation {
  const { text = FIRST, counted = tokens(), finish = 'stop' } = options
  const outcome = {
    client: `200 ${finish} ${inQuotes(text)}`,
    ledger: `alpha ${counted}, receipt`,
    health: 'closed',
    calls: 1,
  }
  return { alone: outcome, paired: outcome }
}

/** Nothing was delivered: another route serves, or the client gets a status. */
export function failed(
  kind: string,
  client: string,
  options: { state?: string; calls?: number; heard?: boolean; errors?: number } = {},
): Expectation {
  const { state = 'closed', calls = 1, heard = true, errors = calls } = options
  const health = (count: number) => (count === 0 ? state : `${state}, ${count} ${kind}`)
  return {
    alone: { client, ledger: 'no row', health: health(errors), calls: heard ? calls : 0 },
    paired: { ...RESCUED, health: health(1), calls: heard ? 1 : 0 },
  }
}

/** No answer at all: the only route is asked twice, because no byte of an answer came. */
export function unanswered(heard = true): Expectation {
  return failed('unavailable', '503 routes_unavailable', { calls: 2, heard })
}

/** 502: the provider failed for no reason that we know. */
export const UNCLASSIFIED = failed('unclassified', '502 bad_gateway')

/** 503: the route is out of service. */
export const UNAVAILABLE = failed('unavailable', '503 routes_unavailable')

/** 503: one of the router's clocks ended the attempt. */
export const TIMED_OUT = failed('timeout', '503 routes_unavailable')

const SILENT = failed('timeout', '504 upstream_timeout')

/** 504: the only route used up the whole time of a synchronous request, which the caller had set, so that the prompt is billed. */
export const OUT_OF_TIME: Expectation = {
  ...SILENT,
  alone: { ...SILENT.alone, ledger: `alpha ${PROMPT_ESTIMATE}+0, no receipt` },
}

/** The provider made more than the router takes: it is billed up to the route's limit, without a receipt, and no other route is asked. */
export const TOO_LONG = notPassedOn({
  client: '422 answer_too_long',
  ledger: `alpha ${PROMPT_ESTIMATE}+1000, no receipt`,
  health: 'closed',
  calls: 1,
})

function notPassedOn(outcome: Outcome): Expectation {
  return { alone: outcome, paired: outcome }
}

/** The request itself is refused, by whatever route. */
export function refused(code: string): Expectation {
  const outcome = { client: `400 ${code}`, ledger: 'no row', health: 'closed', calls: 1 }
  return { alone: outcome, paired: outcome }
}

/** Some text was delivered before the fault: an error in the stream, a row, no receipt, no other route. */
export function cut(
  kind: string,
  options: { text?: string; code?: string; counted?: string; state?: string } = {},
): Expectation {
  const { text = 'Hello ', code = 'bad_gateway', state = 'closed' } = options
  const { counted = `${PROMPT_ESTIMATE}+${Math.ceil(text.length / 3)}` } = options
  const outcome = {
    client: `200 ${inQuotes(text)} then ${code}`,
    ledger: `alpha ${counted}, no receipt`,
    health: `${state}, 1 ${kind}`,
    calls: 1,
  }
  return { alone: outcome, paired: outcome }
}

/** The answer used up the time that a stream may last, which is not taken for a failure of the route. */
export function overdue(): Expectation {
  const { alone } = cut('timeout', { code: 'upstream_timeout' })
  const outcome = { ...alone, health: 'closed' }
  return { alone: outcome, paired: outcome }
}
